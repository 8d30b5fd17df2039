"""Containers: the locked-down profile, the way to the index, base image, images, the test runner and its plug-in."""
