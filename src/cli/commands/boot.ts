import type { BootExplanation, TimelineReply } from '../../api/schemas.ts'
import { connect } from '../connect.ts'
import type { Call } from '../define.ts'
import { wholeNumber } from '../numbers.ts'
import { ago, duration, table } from '../output.ts'
import { waterfall } from '../waterfall.ts'

export async function script({ io, out, args: [name = ''], options }: Call): Promise<void> {
  const found = await explanationOf({ io, options }, name)
  await out.result({ node: found.node, script: found.script }, () => [found.script.trimEnd()])
}

export async function explain({ io, out, args: [name = ''], options }: Call): Promise<void> {
  const found = await explanationOf({ io, options }, name)
  const now = new Date()
  await out.result(found, () => [
    `${out.style('bold', found.node)} ${outcome(found)}`,
    ...found.because.map(sentence => `  ${sentence}`),
    ...(found.hint === undefined ? [] : [`  hint: ${found.hint}`]),
    found.servers.length === 0
      ? '  no boot server has an address in the networks of the site'
      : `  asks ${found.servers.join(', then ')}`,
    ...(found.last === undefined
      ? ['  was not seen booting yet']
      : [
          `  last boot, ${ago(found.last.phases[0]?.at ?? '', now)} ago:`,
          `    ${waterfall(found.last, now)}`,
          `    last seen: ${found.last.last.what}, ${ago(found.last.last.at, now)} ago`,
        ]),
  ])
}

function outcome({ boots, image, form, problem }: BootExplanation): string {
  if (boots === 'image') return `boots ${image?.slice(0, 19)}… as ${form} in RAM`
  return boots === 'disk' ? 'boots from its own disk' : `cannot boot: ${problem}`
}

const explanationOf = ({ io, options }: Pick<Call, 'io' | 'options'>, name: string): Promise<BootExplanation> =>
  connect(io, options).get<BootExplanation>(`/api/v1/nodes/${encodeURIComponent(name)}/boot`)

export async function timeline({ io, out, args: [name = ''], options }: Call<{ boots: string }>): Promise<void> {
  const boots = wholeNumber(options.boots, 1)
  const found = await connect(io, options).get<TimelineReply>(`/api/v1/nodes/${encodeURIComponent(name)}/timeline`, {
    boots,
  })
  const now = new Date()
  await out.result(found, () =>
    found.boots.length === 0
      ? [`${name} was not seen booting yet; what it would boot: muster boot explain ${name}`]
      : found.boots.flatMap((boot, index) => [
          ...(index === 0 ? [] : ['']),
          `${boot.phases[0]?.at ?? ''}  boot ${boot.id ?? '-'}  ${boot.mac}  image ${boot.image?.slice(0, 19) ?? '-'}`,
          `  ${waterfall(boot, now)}`,
          ...table(
            ['  PHASE', 'AT', 'TOOK'],
            boot.phases.map(({ phase, at, seconds }) => [
              `  ${phase}`,
              at,
              seconds === undefined ? '' : duration(seconds),
            ]),
          ),
          ...(boot.failed === undefined ? [] : [`  failed ${ago(boot.failed.at, now)} ago: ${boot.failed.reason}`]),
        ]),
  )
}
