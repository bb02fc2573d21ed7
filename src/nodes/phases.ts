import { z } from 'zod'

/** The steps of a boot, in order. Each is entered once; a boot that fails may go on from where it was. */
export const PHASES = ['dhcp', 'loader', 'kernel', 'initrd', 'fetch', 'root', 'agent', 'ready'] as const
export const Phase = z.enum(PHASES)
export type Phase = z.infer<typeof Phase>

/** What each phase is waiting for, and how many seconds that may take before somebody should know. */
export const WAITS: Readonly<Record<Exclude<Phase, 'ready'>, { readonly seconds: number; readonly until: string }>> = {
  dhcp: { seconds: 120, until: 'its loader asks for a script' },
  loader: { seconds: 300, until: 'kernel and initramfs are fetched' },
  kernel: { seconds: 300, until: 'the initramfs or the agent reports' },
  initrd: { seconds: 180, until: 'the network is up' },
  fetch: { seconds: 900, until: 'the root is there and its digest is right' },
  root: { seconds: 300, until: 'the agent starts' },
  agent: { seconds: 300, until: 'its health checks pass' },
}

export const isLater = (phase: Phase, than: Phase): boolean => PHASES.indexOf(phase) > PHASES.indexOf(than)
