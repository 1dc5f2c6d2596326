"""Starts the keeper: `python3 -I /opt/loci/worker`. The folder of this package is on no tool's path."""

import importlib
import os
import site
import sys

if __name__ == "__main__":
    if sys.flags.no_site:  # packages are found; what they do when Python starts is not done
        sys.path += filter(os.path.isdir, (*site.getsitepackages(), "/opt/loci/packages"))
        for add in (site.setquit, site.setcopyright, site.sethelper):
            add()
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    keeper = importlib.import_module("worker.keeper")
    del sys.path[0]
    keeper.main()
