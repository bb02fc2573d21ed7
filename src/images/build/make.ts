import { chmod, chown, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { MusterError, messageOf } from '../../lib/errors.ts'
import type { LayerCache } from '../layers/cache.ts'
import { type StackedLayer, mergeLayers } from '../layers/merge.ts'
import { explainDisk } from '../store/disk.ts'
import { cleanLayer } from './clean.ts'
import type { BuildReport } from './report.ts'
import { ShownCommands } from './shown-commands.ts'
import type { Stage, StageWork } from './stage.ts'
import { ofImage } from './trouble.ts'

/** A stage with its place: what lies below it is in its key. */
export interface PlannedStage extends Stage {
  readonly key: string
  readonly image: string
  /** What it writes is no newer than this. */
  readonly time: number
}

export interface MakerOptions {
  readonly layers: LayerCache
  /** A directory of this process's own. */
  readonly work: string
  readonly report: BuildReport
  readonly signal: AbortSignal
  /** Somebody wants to look at the root when a stage fails. */
  readonly onFailure?: (work: StageWork, stage: PlannedStage) => Promise<void>
}

/** Makes the layers of stages that are not there yet, in order. */
export class LayerMaker {
  readonly #options: MakerOptions
  readonly #known = new Map<string, StackedLayer>()
  readonly #reported = new Set<string>()
  #count = 0
  #commands = new ShownCommands()

  constructor(options: MakerOptions) {
    this.#options = options
  }

  async layersOf(stages: readonly PlannedStage[]): Promise<StackedLayer[]> {
    const layers: StackedLayer[] = []
    for (const stage of stages) layers.push(await this.#layerOf(stage, layers))
    return layers
  }

  async #layerOf(stage: PlannedStage, lower: readonly StackedLayer[]): Promise<StackedLayer> {
    const { layers, report, signal } = this.#options
    signal.throwIfAborted()
    const known = this.#known.get(stage.key) ?? (await layers.find(stage.key))
    if (known !== undefined) {
      this.#known.set(stage.key, known)
      if (!this.#reported.has(stage.key)) {
        report.begin(stage.image, stage.title)
        report.end('cached')
      }
      this.#reported.add(stage.key)
      return known
    }
    report.begin(stage.image, stage.title)
    this.#commands = new ShownCommands()
    try {
      const made = await this.#make(stage, lower)
      this.#known.set(stage.key, made)
      this.#reported.add(stage.key)
      report.end('made')
      return made
    } catch (error) {
      report.end('failed')
      signal.throwIfAborted()
      throw explained(stage, error, this.#commands.last)
    }
  }

  async #make(stage: PlannedStage, lower: readonly StackedLayer[]): Promise<StackedLayer> {
    const { layers, report, signal, work } = this.#options
    const dir = join(work, `stage-${this.#count++}`)
    const [upper, overlayWork, mountPoint, scratch] = ['upper', 'work', 'root', 'scratch'].map(name =>
      join(dir, name),
    ) as [string, string, string, string]
    for (const path of [upper, overlayWork, mountPoint, scratch]) await mkdir(path, { recursive: true })
    const tree = mergeLayers(lower)
    const top = tree.get('')
    await chown(upper, top?.uid ?? 0, top?.gid ?? 0)
    await chmod(upper, top?.mode ?? 0o755)
    const stageWork: StageWork = {
      lower,
      tree,
      upper,
      scratch,
      overlay: { layers: lower.map(layer => layer.root), upper, work: overlayWork, mountPoint },
      sandbox: {
        signal,
        env: buildEnvironment(stage.time),
        onOutput: chunk => {
          report.output(chunk)
          this.#commands.add(chunk)
        },
      },
    }
    try {
      await stage.make(stageWork)
      if (stage.isKeptWhole !== true) await cleanLayer(upper)
      return await layers.keep(stage.key, upper, stage.time, signal)
    } catch (error) {
      if (!signal.aborted && lower.length > 0) await this.#options.onFailure?.(stageWork, stage)
      throw explainDisk(error, work)
    } finally {
      await rm(dir, { recursive: true, force: true })
    }
  }
}

/** Times, hashes and byte code come out the same the next time. */
export const buildEnvironment = (time: number): Record<string, string> => ({
  SOURCE_DATE_EPOCH: String(time),
  PYTHONDONTWRITEBYTECODE: '1',
  PYTHONHASHSEED: '0',
  TZ: 'UTC',
})

function explained(stage: PlannedStage, error: unknown, command: string | undefined): unknown {
  if (!(error instanceof MusterError)) return error
  const { details } = error
  const here = `${stage.image}: ${stage.title}`
  const said = (pattern: RegExp): boolean => details.some(line => pattern.test(line))
  if (error.code === 'DISK_FULL' || said(/No space left on device/i))
    return new MusterError('DISK_FULL', `${here}: no space is left on the disk`, { details, cause: error })
  if (error.code !== 'EXEC_FAILED') return ofImage(stage.image, error)
  if (said(/^mount: .*(wrong fs type|overlay)/))
    return new MusterError('BUILD_NEEDS', 'the data directory is on a file system that cannot hold layers', {
      details,
      cause: error,
      hint: 'name one on ext4, xfs, btrfs or tmpfs with --data; not one inside a container',
    })
  const how = /: ([^:]+)$/.exec(messageOf(error))?.[1] ?? 'failed'
  return new MusterError('BUILD_FAILED', `${here} ${how}${command === undefined ? '' : `: ${command}`}`, {
    details,
    cause: error,
    hint: `the whole log: muster image log ${stage.image}; look around in the root with --shell-on-failure`,
  })
}
