"""What kernels say to the processor themselves, because no loop makes the compiler say it well."""

import foltr._kernels.compile  # noqa: F401  first: it tells numba where machine code is kept, before numba is imported
