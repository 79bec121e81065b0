"""What kernels say to the processor themselves, because no loop makes the compiler say it well."""
