"""Which packages dnf would install, as JSON: read by dnf.ts. Nothing is downloaded but metadata, nothing is changed.

stdin: {"root", "release", "platform", "arch", "repositories": {name: {"urls", "key"}}, "packages", "keep": {name: evr}}
"""
import json
import sys

import dnf
import dnf.exceptions

request = json.load(sys.stdin)
base = dnf.Base()
conf = base.conf
conf.installroot = request["root"]
conf.cachedir = "/dnf/cache"
conf.persistdir = "/dnf/persist"
conf.logdir = "/dnf/log"
conf.reposdir = []
conf.pluginpath = []
conf.install_weak_deps = False
conf.substitutions["releasever"] = request["release"]
conf.substitutions["arch"] = request["arch"]
conf.substitutions["basearch"] = request["arch"]
if request.get("platform"):
    conf.module_platform_id = request["platform"]
for name, repository in request["repositories"].items():
    added = base.repos.add_new_repo(name, conf, baseurl=repository["urls"], skip_if_unavailable=False)
    # Whoever asks wants to know what there is now. An expiry of 0 would still keep what is younger than a second.
    added._repo.expire()

try:
    base.fill_sack(load_system_repo=True)
except dnf.exceptions.RepoError as error:
    sys.exit("unreachable: %s" % error)

missing = []
for name in request["packages"]:
    spec, _, version = name.partition("=")
    try:
        if spec.startswith("@"):
            base.read_comps()
            base.group_install(spec[1:], ["mandatory", "default"])
            continue
        kept = request["keep"].get(spec)
        if not version and kept:
            try:
                base.install("%s-%s" % (spec, kept))
                continue
            except dnf.exceptions.MarkingError:
                pass
        base.install("%s-%s" % (spec, version) if version else spec)
    except (dnf.exceptions.MarkingError, dnf.exceptions.CompsError):
        missing.append(name)
if missing:
    names = sorted({package.name for package in base.sack.query().available()})
    print(json.dumps({"missing": missing, "names": names}))
    sys.exit(0)

# Stay with what was locked: what depends on it follows.
for package in base.sack.query().available():
    evr = request["keep"].get(package.name)
    if evr and package.evr != evr and base.sack.query().available().filter(name=package.name, evr=evr):
        base.sack.add_excludes(base.sack.query().available().filter(nevra=str(package)))

try:
    base.resolve()
except dnf.exceptions.DepsolveError as error:
    sys.exit("conflict: %s" % error)

found = []
for package in base.transaction.install_set:
    algorithm, digest = package.chksum
    found.append({
        "name": package.name,
        "version": package.evr,
        "arch": package.arch,
        "algorithm": algorithm and __import__("hawkey").chksum_name(algorithm),
        "digest": digest.hex(),
        "size": package.downloadsize,
        "repository": package.reponame,
        "path": package.relativepath,
    })
print(json.dumps({"packages": found}))
