import { z } from 'zod'
import { MusterError } from '../../lib/errors.ts'
import { didYouMean } from '../../lib/suggest.ts'
import type { NodeFilesState } from '../../files/book.ts'
import { diffLists } from '../../files/list-diff.ts'
import { parseList } from '../../files/list.ts'
import { observedOf } from '../../state/observed.ts'
import { type Routes, typed } from '../context.ts'
import { type FileItem, NodeFilesReply } from '../schemas.ts'

const tags = ['nodes']

/** What nodes get of `files`. What is secret stays so: of that there is neither content nor digest. */
export const fileRoutes: Routes = (app, { control, store, files }) => {
  const one = z.strictObject({ name: z.string().max(63) })
  const which = z.strictObject({
    path: z.string().max(1024).optional().describe('Only this one, with what is in it.'),
  })
  typed(app).get(
    '/api/v1/nodes/:name/files',
    {
      config: { role: 'viewer' },
      schema: {
        summary: 'The files it is to have, and how those it has differ',
        tags,
        params: one,
        querystring: which,
        response: { 200: NodeFilesReply },
      },
    },
    async ({ params: { name }, query: { path } }) => {
      if (control.desired.get(name) === undefined) throw new MusterError('NODE_UNKNOWN', `no node is named ${name}`)
      const state: NodeFilesState = files?.about(name) ?? { list: undefined, failures: [] }
      const { config } = await observedOf(store, name)
      const had = config === undefined ? undefined : files?.earlier(config.value)
      const { list } = state
      const items = itemsOf(state, path)
      if (path !== undefined && items.length === 0)
        throw new MusterError('PATH_UNKNOWN', `${name} gets no ${path}${didYouMean(path, pathsIn(state))}`, {
          hint: `muster files show ${name} lists what it gets`,
        })
      return {
        node: name,
        version: list?.version ?? null,
        has: config === undefined ? null : { version: config.value, since: config.since },
        differences: had === undefined ? null : (diffLists(list?.text.toString() ?? '', had) ?? null),
        files: items,
        problems: state.failures.map(({ path: at, source, reason, isKept }) => ({
          path: at,
          source,
          reason,
          kept: isKept,
        })),
      }
    },
  )
}

const linesOf = ({ list }: NodeFilesState) => parseList(list?.text.toString() ?? '') ?? []
const pathsIn = (state: NodeFilesState): string[] => linesOf(state).map(line => line.path)

function itemsOf(state: NodeFilesState, only: string | undefined): FileItem[] {
  return linesOf(state)
    .filter(line => only === undefined || line.path === only)
    .map(line => {
      const held = state.list?.contents.find(({ sha256 }) => sha256 === line.sha256)
      if (held === undefined) return line
      const { sha256, ...about } = line
      if (held.isSecret) return { ...about, secret: true }
      return { ...about, sha256, ...(only !== undefined && { content: held.bytes.toString('utf8') }) }
    })
}
