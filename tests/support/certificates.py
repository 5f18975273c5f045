"""Certificates for servers on loopback, made by the `openssl` program."""

import ssl
import subprocess
from pathlib import Path


def make_certificate(directory: Path, host: str, *, expired: bool = False, addresses: bool = True) -> None:
    """`ca.pem` in the directory, and `server.pem`, `server.key` for a host (and 127.0.0.1), signed by it."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=directory, timeout=60)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout"]
    usage = "keyUsage=critical,keyCertSign,cRLSign"
    openssl("req", "-x509", *key, "ca.key", "-out", "ca.pem", "-subj", "/CN=test authority", "-addext", usage)
    openssl("req", "-new", *key, "server.key", "-out", "server.csr", "-subj", f"/CN={host}")
    address = ",IP:127.0.0.1" if addresses else ""
    (directory / "ca.cnf").write_text(
        "[ca]\ndefault_ca=d\n[d]\ndatabase=index\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\npolicy=p\n"
        f"x509_extensions=e\n[p]\ncommonName=supplied\n[e]\nsubjectAltName=DNS:{host}{address}\n"
        "keyUsage=critical,digitalSignature\nauthorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\n"
    )
    (directory / "index").touch()
    (directory / "serial").write_text("01\n")
    dates = ["-startdate", "20200101000000Z", "-enddate", "20200201000000Z"] if expired else ["-days", "2"]
    signing = ["-cert", "ca.pem", "-keyfile", "ca.key", "-in", "server.csr", "-out", "server.pem"]
    openssl("ca", "-batch", "-notext", "-config", "ca.cnf", *dates, *signing)


def server_context(directory: Path) -> ssl.SSLContext:
    """What a server needs to show the certificate of `make_certificate`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "server.pem", directory / "server.key")
    return context
