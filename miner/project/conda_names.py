"""What a conda package is outside conda: its distribution on the package index, or Debian packages.

Names that are not listed are the same on both sides. Sources: the recipes of conda-forge, the metadata of the
distributions, and Debian's package lists (bookworm).
"""

from __future__ import annotations

from collections.abc import Mapping

from miner.project.text import words

DISTRIBUTIONS: Mapping[str, str] = {
    "pytorch": "torch",  # named after the project, on the index after the module
    "pytorch-cpu": "torch",  # a build variant
    "pytorch-gpu": "torch",  # a build variant
    "tensorflow-base": "tensorflow",  # a part of the whole
    "matplotlib-base": "matplotlib",  # without the Qt back end
    "seaborn-base": "seaborn",  # without statsmodels
    "dask-core": "dask",  # without optional parts
    "black-jupyter": "black",  # with an extra
    "msgpack-python": "msgpack",  # conda has the C library under the plain name
    "blosc-python": "blosc",
    "snappy-python": "python-snappy",
    "lz4-python": "lz4",
    "protobuf-python": "protobuf",
    "pytables": "tables",  # named after the project, on the index after the module
    "iris": "scitools-iris",  # another project has the plain name on the index
    "pyqt": "PyQt5",  # conda-forge's pyqt is version 5
    "pyqt5": "PyQt5",
    "pyqt6": "PyQt6",
    "pyside2": "PySide2",
    "opencv": "opencv-python-headless",  # the index's own build without a display
    "py-opencv": "opencv-python-headless",
    "python-graphviz": "graphviz",  # conda has the tool under the plain name
    "python-blosc": "blosc",
    "python-snappy": "python-snappy",
    "python-lmdb": "lmdb",
    "py-xgboost": "xgboost",
    "py-lief": "lief",
    "py-cpuinfo": "py-cpuinfo",
    "ruamel_yaml": "ruamel.yaml",  # Anaconda's own spelling
    "ruamel.yaml": "ruamel.yaml",
    "backports.zoneinfo": "backports.zoneinfo",
    "importlib_metadata": "importlib-metadata",
    "typing_extensions": "typing-extensions",
    "prompt_toolkit": "prompt-toolkit",
    "sqlalchemy": "SQLAlchemy",
    "psycopg2": "psycopg2-binary",  # conda brings libpq along, as the binary distribution does
    "cartopy": "Cartopy",
    "ipython_genutils": "ipython-genutils",
    "mysqlclient": "mysqlclient",
    "pyarrow-core": "pyarrow",
    "polars-default": "polars",
    "numpy-base": "numpy",
    "scikit-image-base": "scikit-image",
    "flask-core": "flask",
    "uvicorn-standard": "uvicorn",
    "gcsfs-core": "gcsfs",
    "jupyterlab_server": "jupyterlab-server",
    "pip-tools": "pip-tools",
}
"""Conda name -> distribution, where they differ."""

SYSTEM: Mapping[str, tuple[str, ...]] = {
    "graphviz": ("graphviz",),  # the tool `dot`
    "ffmpeg": ("ffmpeg",),
    "pandoc": ("pandoc",),
    "git": ("git",),
    "git-lfs": ("git-lfs",),
    "git-annex": ("git-annex",),
    "nodejs": ("nodejs",),
    "openjdk": ("default-jre-headless",),
    "maven": ("maven",),
    "r-base": ("r-base-core",),
    "imagemagick": ("imagemagick",),
    "ghostscript": ("ghostscript",),
    "poppler": ("poppler-utils",),
    "tesseract": ("tesseract-ocr",),
    "redis-server": ("redis-server",),
    "postgresql": ("postgresql",),
    "openmpi": ("libopenmpi-dev", "openmpi-bin"),
    "mpich": ("libmpich-dev", "mpich"),
    "hdf5": ("libhdf5-dev",),
    "libnetcdf": ("libnetcdf-dev",),
    "netcdf4-c": ("libnetcdf-dev",),
    "libgdal": ("libgdal-dev",),
    "libgdal-core": ("libgdal-dev",),
    "geos": ("libgeos-dev",),
    "proj": ("libproj-dev", "proj-bin"),
    "eccodes": ("libeccodes-dev",),
    "udunits2": ("libudunits2-dev",),
    "fftw": ("libfftw3-dev",),
    "gsl": ("libgsl-dev",),
    "eigen": ("libeigen3-dev",),
    "boost-cpp": ("libboost-all-dev",),
    "libboost-devel": ("libboost-all-dev",),
    "suitesparse": ("libsuitesparse-dev",),
    "openblas": ("libopenblas-dev",),
    "libopenblas": ("libopenblas-dev",),
    "liblapack": ("liblapack-dev",),
    "libsndfile": ("libsndfile1",),
    "libspatialindex": ("libspatialindex-dev",),
    "libxml2": ("libxml2-dev",),
    "libxslt": ("libxslt1-dev",),
    "xerces-c": ("libxerces-c-dev",),
    "libmagic": ("libmagic1",),
    "zeromq": ("libzmq3-dev",),
    "libffi": ("libffi-dev",),
    "swig": ("swig",),
    "glpk": ("glpk-utils", "libglpk-dev"),
    "samtools": ("samtools",),
    "bedtools": ("bedtools",),
    "bcftools": ("bcftools",),
    "htslib": ("libhts-dev", "tabix"),
    "xvfbwrapper": ("xvfb",),
}
"""Conda name -> Debian packages, where it is no Python package."""

OURS = words(
    """
    python pip setuptools wheel conda mamba conda-build boa anaconda-client nomkl mkl mkl-service blas libblas
    ca-certificates openssl certifi-win32 compilers c-compiler cxx-compiler fortran-compiler gcc gxx gfortran clang
    clangxx llvm-openmp llvmlite-dev libgcc-ng libstdcxx-ng make cmake-dev pkg-config cudatoolkit cuda cudnn
    pytorch-cuda cpuonly vs2015_runtime vc python_abi sqlite readline zlib bzip2 xz tk ncurses
    gcc_linux-64 gxx_linux-64 gfortran_linux-64 conda-lock conda-verify sysroot_linux-64
    _libgcc_mutex _openmp_mutex pre_commit
    """
)
"""Packages that stand for conda itself, the interpreter, a compiler or a device; the ground has what it needs."""

LIBRARIES_OF_PYTHON = words(
    "libcst librosa libsass libclang libtmux libusb1 libarchive-c libvirt-python liblinear-official lib3to6"
)
"""Python packages whose name begins like that of a library in C."""
