"""What users' cells see of the environment of a pool's own processes, where these users are strangers to each other."""

from collections.abc import Mapping

#: Where programs and libraries are, how to compute, the way to the network. The rest is the operator's;
#: `Pool.environment` is for what cells need besides.
_KEPT = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"),
        *("PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH"),
        *("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    )
)
_KEPT_PREFIXES = ("LC_", "CUDA_", "NVIDIA_", "NCCL_", "OMP_", "MKL_", "OPENBLAS_", "BULLETIN_")


def select_harmless(environ: Mapping[str, str]) -> dict[str, str]:
    """Select the variables that are known to be no secrets."""
    return {name: value for name, value in environ.items() if name.upper() in _KEPT or name.startswith(_KEPT_PREFIXES)}
