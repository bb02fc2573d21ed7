import { readFast } from './fast.ts'
import { readFull } from './full.ts'
import type { YamlResult } from './tree.ts'

/**
 * What a YAML file says, with the line and column of every value, or all its problems.
 * Everyday files take the fast way; only `readFull` ever reports a problem.
 */
export function readYaml(text: string): YamlResult {
  return readFast(text) ?? readFull(text)
}
