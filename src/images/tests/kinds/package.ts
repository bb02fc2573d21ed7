import { Unknown, linesOf } from '../found.ts'
import type { Subject } from '../subject.ts'
import { type Observe, gather, shell, targetOf, trouble, unknown } from './look.ts'

export const observePackage: Observe = async (subject, check) => {
  const versions = await versionsOf(subject, targetOf(check))
  if (versions instanceof Unknown) return unknown(check, versions)
  return gather(check, { installed: versions.length > 0, versions })
}

/**
 * The package manager is the one whose database the image has; its own tool is asked. That of Alpine is plain text, and
 * its tool older than the option to print a version.
 */
const ASK = `
export LC_ALL=C
if [ -e /var/lib/dpkg/status ]; then
  echo dpkg-query
  dpkg-query -W -f '\${db:Status-Status} \${Version}\\n' -- "$1"
elif [ -e /lib/apk/db/installed ] || [ -e /usr/lib/apk/db/installed ]; then
  echo apk
  for db in /lib/apk/db/installed /usr/lib/apk/db/installed; do
    [ -e "$db" ] || continue
    while IFS= read -r line; do
      case $line in P:*) name=\${line#P:} ;; V:*) [ "$name" != "$1" ] || echo "installed \${line#V:}" ;; esac
    done < "$db"
    exit 0
  done
elif [ -d /var/lib/rpm ] || [ -d /usr/lib/sysimage/rpm ] || [ -d /usr/share/rpm ]; then
  echo rpm
  rpm -q --nosignature --nodigest --qf 'installed %|EPOCH?{%{EPOCH}:}:{}|%{VERSION}-%{RELEASE}\\n' -- "$1"
else
  echo none
fi`

const NOT_INSTALLED = /^package .* is not installed$|no packages found matching/m

/** Several of a kernel, none of what is not installed. */
async function versionsOf(subject: Subject, name: string): Promise<string[] | Unknown> {
  const result = await shell(subject, ASK, [name], { timeout: 60_000 })
  const [tool = 'sh', ...lines] = linesOf(result.stdout.toString('utf8'))
  if (tool === 'none') return new Unknown('the image has no packages of dpkg, rpm or apk')
  const said = `${lines.join('\n')}\n${result.stderr.toString('utf8')}`
  if (result.exitCode === 1 && NOT_INSTALLED.test(said)) return []
  if (result.exitCode !== 0) return trouble({ ...result, stdout: Buffer.from(lines.join('\n')) }, tool)
  return lines.flatMap(line => /^installed (\S+)$/.exec(line)?.[1] ?? [])
}
