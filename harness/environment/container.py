"""Whether the process runs in a container, by the marks that each kind leaves."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path


def container(root: Path = Path("/"), variables: Mapping[str, str] = os.environ) -> str:
    """`kubernetes`, `podman`, `docker`, the name in $container (`lxc`, ...), or `none` without a mark."""
    if "KUBERNETES_SERVICE_HOST" in variables or (root / "var/run/secrets/kubernetes.io").is_dir():
        return "kubernetes"
    if (root / "run/.containerenv").exists():
        return "podman"
    if (root / ".dockerenv").exists():
        return "docker"
    if variables.get("container"):
        return variables["container"]
    try:
        groups = (root / "proc/1/cgroup").read_text()
    except OSError:
        return "none"
    mark = re.search(r"kubepods|docker|libpod|lxc|containerd", groups)
    names = {"kubepods": "kubernetes", "libpod": "podman"}
    return names.get(mark[0], mark[0]) if mark else "none"
