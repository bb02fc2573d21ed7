/** One figure, printed as one JSON line. `ratio` is our value divided by the peer's, measured in the same run. */
export interface Figure {
  readonly bench: string
  readonly case: string
  readonly value: number
  readonly unit: 's' | 'ms' | 'MB'
  /** What it is held against: another program, or the limit we promise. */
  readonly peer?: string
  readonly ratio?: number
}

export type Bench = () => AsyncGenerator<Figure>

export const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

/** Median wall-clock seconds of several runs; the first, which fills caches, does not count. */
export async function seconds(runs: number, work: () => Promise<unknown>): Promise<number> {
  const times: number[] = []
  for (let run = 0; run <= runs; run++) {
    const start = performance.now()
    await work()
    times.push((performance.now() - start) / 1000)
  }
  return median(times.slice(1))
}

/** Against a limit we promise: a ratio below 1 keeps it. */
export const against = (limit: number, value: number): { readonly peer: string; readonly ratio: number } => ({
  peer: `limit ${limit}`,
  ratio: round(value / limit),
})

export const round = (value: number): number => Number(value.toPrecision(3))
