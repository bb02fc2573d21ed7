import type { BootReply } from '../api/schemas.ts'

const BLOCKS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']
/** Seconds that one whole block stands for. */
const BLOCK = 8
/** The most blocks of one bar: what takes longer is long enough. */
const LONGEST = 16

/** How long, as a bar: 15 s → '█▉'. */
function bar(seconds: number): string {
  const eighths = Math.min(Math.max(1, Math.round((seconds / BLOCK) * 8)), LONGEST * 8)
  return '█'.repeat(Math.floor(eighths / 8)) + (BLOCKS[eighths % 8] ?? '')
}

/** One boot on one line: dhcp 0.0s ▏ loader 0.3s ▏ … ready   21.0 s */
export function waterfall(boot: BootReply, now: Date): string {
  const end = boot.failed === undefined ? now.getTime() : Date.parse(boot.failed.at)
  const parts = boot.phases.flatMap(({ phase, at, seconds }) => {
    if (phase === 'ready') return []
    // The clock here may be behind the one there.
    const took = seconds ?? Math.max(0, end - Date.parse(at)) / 1000
    const open = seconds === undefined && boot.failed === undefined
    return [`${phase} ${took.toFixed(1)}s ${open ? '…' : bar(took)}`]
  })
  const first = boot.phases[0]?.at ?? boot.last.at
  const last = boot.phases.at(-1)
  if (boot.failed !== undefined) return `${parts.join(' ')} FAILED: ${boot.failed.reason}`
  if (last?.phase !== 'ready') return parts.join(' ')
  const total = (Date.parse(last.at) - Date.parse(first)) / 1000
  return `${[...parts, 'ready'].join(' ')}   ${total.toFixed(1)} s`
}
