import type { PackageManager } from '../package.ts'
import { compareApkVersions } from './apk.ts'
import { compareDebianVersions } from './debian.ts'
import { compareRpmVersions } from './rpm.ts'

const COMPARE: Readonly<Record<PackageManager, (a: string, b: string) => number>> = {
  dpkg: compareDebianVersions,
  rpm: compareRpmVersions,
  apk: compareApkVersions,
}

/** Below zero when `a` is the older one, as its package manager sees it. */
export const compareVersions = (manager: PackageManager, a: string, b: string): number => COMPARE[manager](a, b)
