import { VERSION } from '../../version.ts'
import type { Call } from '../define.ts'
import { renderMan } from '../manual.ts'
import { commands, globalOptions } from '../spec.ts'

export async function man({ out }: Call): Promise<void> {
  out.line(renderMan(commands, globalOptions, VERSION).trimEnd())
}
