import { createReadStream } from 'node:fs'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Routes, actorOf, typed } from '../context.ts'

export const backupRoutes: Routes = (app, { store }) => {
  typed(app).post(
    '/api/v1/backup',
    { config: { role: 'admin' }, schema: { summary: 'A consistent copy of the state, as a file', tags: ['server'] } },
    async (request, reply) => {
      const dir = await mkdtemp(join(tmpdir(), 'muster-backup-'))
      const remove = (): void => void rm(dir, { recursive: true, force: true })
      try {
        const file = join(dir, 'state.db')
        await store.backup(file)
        const { size } = await stat(file)
        const actor = actorOf(request)
        await store.commit([], [{ kind: 'backup.made', actor: actor.name, from: actor.from, data: { bytes: size } }])
        void reply.type('application/octet-stream').header('content-length', size)
        return reply.send(createReadStream(file).once('close', remove))
      } catch (error) {
        remove()
        throw error
      }
    },
  )
}
