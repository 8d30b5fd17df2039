"""The three user jobs, each as one short, literal list of steps."""
