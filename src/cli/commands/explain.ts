import type { Explanation } from '../../site/explain.ts'
import { showValue } from '../../site/paths.ts'
import { connect, findSiteDir } from '../connect.ts'
import type { Call } from '../define.ts'
import type { Output } from '../output.ts'
import { table } from '../output.ts'

export async function explain(call: Call): Promise<void> {
  const {
    out,
    args: [, path = ''],
  } = call
  const items = await explanations(call)
  await out.result(items, () =>
    path === '' ? summary(items) : items.flatMap((item, index) => [...(index > 0 ? [''] : []), ...story(out, item)]),
  )
}

async function explanations({ io, args: [node = '', path = ''], options }: Call): Promise<readonly Explanation[]> {
  const dir = await findSiteDir(io, options)
  if (dir === undefined || options.server !== undefined) {
    const { items } = await connect(io, options).get<{ items: Explanation[] }>(
      `/api/v1/nodes/${encodeURIComponent(node)}/explain`,
      { path },
    )
    return items
  }
  const [{ explainNode }, { openSite }, { directorySource }] = await Promise.all([
    import('../../site/explain.ts'),
    import('../../site/site.ts'),
    import('../../site/source.ts'),
  ])
  return explainNode(await openSite(await directorySource(dir)), node, path)
}

const at = ({ file, line }: { file: string; line: number }): string => `${file}:${line}`

function summary(items: readonly Explanation[]): string[] {
  const rows = items.map(item => [item.path, showValue(item.value), at(item.from), item.from.layer])
  return table(['PATH', 'VALUE', 'FROM', 'LAYER'], rows)
}

/** boot.image = gpu@stable, from where, over what. */
function story(out: Output, item: Explanation): string[] {
  const rows = [
    ['from', at(item.from), item.from.layer, item.written === undefined ? '' : showValue(item.written)],
    ...item.appendsTo.map(one => ['appends to', at(one), one.layer, showValue(one.value)]),
    ...item.overrides.map(one => ['overrides', at(one), one.layer, showValue(one.value)]),
  ]
  const [, ...lines] = table(['', '', '', ''], rows)
  return [`${out.style('bold', item.path)} = ${showValue(item.value)}`, ...lines.map(line => `  ${line}`)]
}
