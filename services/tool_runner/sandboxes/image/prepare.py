"""Runs once, as root, while the sandbox image is built: checks the base, and makes workers start fast."""

import compileall
import os
import pathlib
import re
import site
import stat
import subprocess
import sys
import sysconfig

assert sys.version_info >= (3, 11), f"the base needs Python 3.11 or newer, and has {sys.version}"
node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
assert int(node.strip().lstrip("v").split(".")[0]) >= 20, f"the base needs Node 20 or newer, and has {node}"

# Last on the path: any other version of a package that is installed goes before ours.
packages = pathlib.Path(site.getsitepackages()[0])
packages.mkdir(parents=True, exist_ok=True)
(packages / "loci.pth").write_text("/opt/loci/packages\n")

# Compiled, a worker starts in a fourth of the time.
left_out = re.compile("/(test|idlelib|lib2to3|site-packages|dist-packages)/")
compileall.compile_dir(sysconfig.get_path("stdlib"), quiet=2, rx=left_out)
compileall.compile_dir("/opt/loci", quiet=2)
subprocess.run([sys.executable, "-c", "import letta_client"], check=True)

for folder in ("/work", "/inputs", "/opt/loci/layer"):
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o1777)

# Tools have no privileges anyway; but a file that grants some has no use here.
for folder, _, names in os.walk("/"):
    if not folder.startswith(("/proc", "/sys", "/dev")):
        for path in (os.path.join(folder, name) for name in names):
            mode = os.lstat(path).st_mode
            if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
                os.chmod(path, stat.S_IMODE(mode) & ~(stat.S_ISUID | stat.S_ISGID))
