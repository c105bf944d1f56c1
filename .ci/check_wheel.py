"""Run by an interpreter that has nothing but the wheel: is what users get whole, and no more?"""

import sys
from importlib import metadata, resources

import django
from django.conf import settings
from django.core.management import call_command

files = [str(path) for path in metadata.files("flexiq-django") or ()]
tops = {path.partition("/")[0] for path in files}
strays = {top for top in tops if top != "flexiq_django" and not top.endswith(".dist-info")}
if strays:
    sys.exit(f"the wheel installs more than the package: {sorted(strays)}")
if "flexiq" not in metadata.entry_points(group="pytest11").names:
    sys.exit("the wheel does not announce its fixtures to pytest")
if not resources.files("flexiq_django").joinpath("py.typed").is_file():
    sys.exit("py.typed is not in the wheel, so type checkers ignore our types")

settings.configure(
    INSTALLED_APPS=["flexiq_django"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
)
django.setup()
call_command("migrate", verbosity=0)
call_command("makemigrations", "flexiq_django", check_changes=True, dry_run=True, verbosity=0)

import flexiq_django  # noqa: E402 - public names are resolved on first use

for name in flexiq_django.__all__:
    getattr(flexiq_django, name)
sys.stdout.write(f"Django {django.__version__}, {len(files)} files, {flexiq_django.__all__}\n")
