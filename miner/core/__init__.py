"""The vocabulary: records, reasons, errors, settings, ledger, blobs. Imports nothing of ours but itself."""
