import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { NodeItem } from '../../api/schemas.ts'
import type { Site } from '../../site/site.ts'
import { candidates } from '../candidates.ts'
import { connect, findSiteDir } from '../connect.ts'
import type { Call, Completes } from '../define.ts'
import { commands, globalOptions } from '../spec.ts'

const SCRIPTS: Readonly<Record<string, string>> = {
  // Bash splits words at characters such as = and :, too: what it has split off is taken off the candidates again. Only at
  // @, which it takes for the beginning of a host name, it replaces the character as well.
  bash: `_muster() {
  local line=\${COMP_LINE:0:COMP_POINT} current=\${COMP_WORDS[COMP_CWORD]} words word candidate
  # shellcheck disable=SC2162 # a backslash before a space belongs to the word
  read -a words <<< "$line"
  [[ $line == *[^\\\\]' ' ]] && words+=('')
  word=\${words[-1]}
  local cut=$(( \${#word} - \${#current} ))
  (( cut > 0 )) || cut=0
  (( cut > 0 )) && [[ \${word:cut-1:1} == @ ]] && cut=$(( cut - 1 ))
  COMPREPLY=()
  while IFS=$'\\t' read -r candidate _; do
    case $candidate in
      :files) compopt -o filenames; mapfile -t -O "\${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word") ;;
      :directories) compopt -o filenames; mapfile -t -O "\${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$word") ;;
      *) COMPREPLY+=("\${candidate:cut}") ;;
    esac
  done < <(muster complete -- "\${words[@]:1}" 2>/dev/null)
}
complete -F _muster muster
`,
  // Works both ways: sourced, and as a file _muster in a directory of fpath, where the first call loads it.
  zsh: `#compdef muster
_muster() {
  local -a found
  local candidate about
  while IFS=$'\\t' read -r candidate about; do
    case $candidate in
      :files) _files ;;
      :directories) _files -/ ;;
      *) found+=("\${candidate//:/\\\\:}\${about:+:$about}") ;;
    esac
  done < <(muster complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  (( \${#found} )) && _describe 'muster' found
}
if [ "$funcstack[1]" = _muster ]; then _muster "$@"; else compdef _muster muster; fi
`,
  fish: `function __muster_complete
  for line in (muster complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
    switch $line
      case ':files'
        __fish_complete_path (commandline -ct)
      case ':directories'
        __fish_complete_directories (commandline -ct)
      case '*'
        echo $line
    end
  end
end
complete -c muster -f -a '(__muster_complete)'
`,
}

export async function completion({ out, args: [shell = ''] }: Call): Promise<void> {
  out.line((SCRIPTS[shell] ?? '').trimEnd())
}

/** One candidate a line, with what it is about behind a tab. Says nothing rather than fail: somebody is typing. */
export async function complete(call: Call): Promise<void> {
  const typed = call.rest.at(-1) ?? ''
  const { words, names } = candidates(call.rest, commands, globalOptions)
  for (const { word, about } of words) call.out.line(about === '' ? word : `${word}\t${about}`)
  if (names === 'files' || names === 'directories') call.out.line(`:${names}`)
  else if (names !== undefined) for (const name of await lookUp(call, names, typed).catch(() => [])) call.out.line(name)
}

const MOST = 1000

/** Names that continue the last name of a set being typed: for `n001,@co` → `n001,@compute`. */
async function lookUp(call: Call, kind: Exclude<Completes, 'files' | 'directories'>, typed: string): Promise<string[]> {
  if (kind !== 'nodes' && kind !== 'groups')
    return (await imageNames(call, kind)).filter(name => name.startsWith(typed)).slice(0, MOST)
  const [, before = '', last = ''] = /^(.*[,!&^])?([^,!&^]*)$/.exec(typed) ?? []
  const known = await knownNames(call)
  const wanted =
    kind === 'groups' ? known.groups : last.startsWith('@') ? known.groups.map(group => `@${group}`) : known.nodes
  return wanted
    .filter(name => name.startsWith(last))
    .slice(0, MOST)
    .map(name => before + name)
}

async function imageNames({ io, rest, options: own }: Call, kind: 'images' | 'recipes' | 'modules'): Promise<string[]> {
  const [site, data] = [valueOf(rest, '--site'), valueOf(rest, '--data')]
  const { dataDir, imagesToRead } = await import('../images.ts')
  const dataOption = data === undefined ? {} : { data }
  if (kind === 'images') return (await imagesToRead(io, dataOption)).names()
  const dir = await findSiteDir(io, { ...own, ...(site !== undefined && { site }) })
  if (kind === 'recipes') {
    const found = await readdir(join(dir ?? '', 'images'), { withFileTypes: true })
    return found.filter(entry => entry.isDirectory()).map(entry => entry.name)
  }
  const { moduleNames } = await import('../../images/modules/site.ts')
  const opened = dir === undefined ? undefined : await openSiteIn(dir).catch(() => undefined)
  return moduleNames(opened, dir ?? '', join(dataDir(io, dataOption), 'images/state'))
}

async function openSiteIn(dir: string): Promise<Site> {
  const [{ openSite }, { directorySource }] = await Promise.all([
    import('../../site/site.ts'),
    import('../../site/source.ts'),
  ])
  return openSite(await directorySource(dir))
}

/** From the site one is in, or else from the server. */
async function knownNames({ io, rest, options: own }: Call): Promise<{ nodes: string[]; groups: string[] }> {
  const [site, server] = [valueOf(rest, '--site'), valueOf(rest, '--server')]
  const options = { ...own, ...(site !== undefined && { site }), ...(server !== undefined && { server }) }
  const dir = await findSiteDir(io, options)
  if (dir !== undefined) {
    const site = await openSiteIn(dir)
    return { nodes: [...site.nodes.keys()], groups: [...site.groups.keys()] }
  }
  const client = connect(io, options)
  const nodes: string[] = []
  for await (const page of client.pages<NodeItem>('/api/v1/nodes', { limit: 50_000 }))
    for (const { name } of page) nodes.push(name)
  const { items } = await client.get<{ items: { name: string }[] }>('/api/v1/groups')
  return { nodes, groups: items.map(group => group.name) }
}

/** What the line being typed says an option is. */
function valueOf(words: readonly string[], option: string): string | undefined {
  const at = words.lastIndexOf(option)
  return at < 0 || at >= words.length - 2 ? undefined : words[at + 1]
}
