import { MusterError } from '../lib/errors.ts'
import { Mutex } from '../lib/mutex.ts'
import { fold } from '../lib/nodeset/index.ts'
import { checkSite } from '../site/check.ts'
import { type SiteDiff, diffSites } from '../site/diff.ts'
import { locate } from '../site/explain.ts'
import type { FileEdits } from '../site/edit.ts'
import {
  type Repository,
  checkoutTree,
  commitPaths,
  describeCommit,
  differingPaths,
  dirtyPaths,
  headCommit,
  keep,
  snapshotTree,
  treeOf,
} from '../site/git.ts'
import { gitSource } from '../site/git-source.ts'
import { journaled } from '../site/journal.ts'
import { siteInvalid } from '../site/problems.ts'
import { checkSecrets } from '../site/secrets.ts'
import { SETTINGS, settingsOf } from '../site/settings.ts'
import { type Site, openSite } from '../site/site.ts'
import type { Workspace } from '../site/workspace.ts'
import type { Store } from '../state/store.ts'
import { type Actor, authorOf } from './actor.ts'
import { type DesiredChanges, DesiredState, storeChanges } from './desired.ts'
import { type Generation, currentGeneration, generationChanges, generationNumber } from './generations.ts'

/** What would be applied, and what it would change. */
export interface Plan {
  /** The generation in force; 0 before the first. */
  readonly generation: number
  readonly commit: string
  readonly tree: string
  readonly dirty: readonly string[]
  readonly diff: SiteDiff
}

export interface ApplyOptions {
  readonly allowDirty?: boolean | undefined
  /** Apply only if this is still what would be applied, and on top of what: as a plan said. */
  readonly expect?: { readonly tree: string; readonly generation: number } | undefined
}

export interface Applied {
  readonly generation: Generation
  readonly diff: SiteDiff
  /** The site was in force already: nothing was written. */
  readonly unchanged: boolean
}

/**
 * Turns the site into desired state. One change at a time; what is acknowledged is stored, and what fails leaves
 * everything as it was.
 */
export class Control {
  readonly #store: Store
  readonly #workspace: Workspace
  readonly #identities: readonly string[]
  readonly #now: () => Date
  readonly #desired: DesiredState
  readonly #mutex = new Mutex()
  /** The site last looked at: the next one is built on what did not change. */
  #latest: { readonly tree: string; readonly site: Site } | undefined

  private constructor(store: Store, workspace: Workspace, desired: DesiredState, options: ControlOptions) {
    this.#store = store
    this.#workspace = workspace
    this.#desired = desired
    this.#identities = options.identities ?? []
    this.#now = options.now ?? (() => new Date())
  }

  static async start(store: Store, workspace: Workspace, options: ControlOptions = {}): Promise<Control> {
    return new Control(store, workspace, await DesiredState.load(store), options)
  }

  get desired(): DesiredState {
    return this.#desired
  }

  get workspace(): Workspace {
    return this.#workspace
  }

  /** The site as it was applied: for questions about what is in force. */
  async appliedSite(): Promise<Site> {
    const { generation } = await currentGeneration(this.#store)
    if (generation === undefined)
      throw new MusterError('GENERATION_UNKNOWN', 'no site has been applied yet', {
        hint: 'apply it with: muster site apply',
      })
    return this.#siteOf(generation.tree)
  }

  /** Resolves when no change is under way: what the store says and what is in memory agree. */
  idle(): Promise<void> {
    return this.#mutex.run(() => Promise.resolve())
  }

  plan(options: { readonly allowDirty?: boolean | undefined } = {}): Promise<Plan> {
    return this.#mutex.run(() => this.#plan(options.allowDirty ?? true))
  }

  apply(actor: Actor, options: ApplyOptions = {}): Promise<Applied> {
    return this.#mutex.run(() => this.#apply(actor, options))
  }

  /** Makes the site what it was in an earlier generation, in a new commit, and applies that. */
  revert(actor: Actor, number: number): Promise<Applied> {
    return this.#mutex.run(async () => {
      const target = await generationNumber(this.#store, number)
      const { repo } = this.#workspace
      refuseDirty(await dirtyPaths(repo))
      // Only a site that is valid today may come back: what counts as valid can have changed since.
      await this.#validSite(target.tree)
      const paths = await differingPaths(repo, await headCommit(repo), target.tree)
      const message = `Revert to generation ${number}\n\nThat was ${target.commit.slice(0, 12)}: ${target.subject}`
      await journaled(repo, paths, async () => {
        await checkoutTree(repo, target.tree)
        await commitPaths(repo, paths, message, authorOf(actor))
      })
      return this.#apply(actor, {})
    })
  }

  /** Edits the site's files and commits; applying is another step. */
  edit(actor: Actor, plan: (site: Site) => FileEdits, message: string): Promise<{ commit: string; files: string[] }> {
    return this.#mutex.run(async () => {
      const done = await this.#workspace.change(plan, message, authorOf(actor))
      if (done.files.length === 0) return done
      await this.#store.commit(
        [],
        [{ kind: 'site.edited', actor: actor.name, from: actor.from, data: { ...done, message } }],
      )
      return done
    })
  }

  async #plan(
    allowDirty: boolean,
  ): Promise<Plan & { readonly site: Site; readonly changes: DesiredChanges; readonly generationRevision: number }> {
    const { repo } = this.#workspace
    const commit = await headCommit(repo)
    const dirty = (await dirtyPaths(repo)).filter(path => !LOCK.test(path))
    if (!allowDirty) refuseDirty(dirty)
    const tree = dirty.length > 0 ? await snapshotTree(repo) : await treeOf(repo, commit)
    const site = await this.#validSite(tree)
    const { generation, revision } = await currentGeneration(this.#store)
    const changes = this.#desired.compare(site)
    const diff = this.#diff(site, changes)
    return {
      generation: generation?.number ?? 0,
      generationRevision: revision,
      commit,
      tree,
      dirty,
      diff,
      site,
      changes,
    }
  }

  async #apply(actor: Actor, options: ApplyOptions): Promise<Applied> {
    const plan = await this.#plan(options.allowDirty ?? false)
    const { expect } = options
    if (expect !== undefined && (expect.tree !== plan.tree || expect.generation !== plan.generation)) {
      throw new MusterError('SITE_MOVED', 'the site changed since you looked at it')
    }
    const { generation: before } = await currentGeneration(this.#store)
    if (before?.tree === plan.tree && plan.changes.size === 0)
      return { generation: before, diff: plan.diff, unchanged: true }

    const { author, subject } = await describeCommit(this.#workspace.repo, plan.commit)
    const generation: Generation = {
      number: plan.generation + 1,
      commit: plan.commit,
      tree: plan.tree,
      dirty: plan.dirty.length > 0,
      author,
      subject,
      appliedBy: actor.name,
      appliedAt: this.#now().toISOString(),
      nodes: plan.diff.nodes,
      groups: [...plan.site.groups.keys()],
    }
    // Before the store knows of it: a name too many in git harms nobody, a generation whose tree is gone would.
    await keep(this.#workspace.repo, `generation-${generation.number}`, generation.dirty ? plan.tree : plan.commit)
    const revision = await this.#store.commit(
      [
        ...generationChanges(generation, plan.generationRevision),
        { key: SETTINGS, value: JSON.stringify(settingsOf(plan.site)) },
        ...storeChanges(plan.changes),
      ],
      [
        {
          kind: 'site.applied',
          nodes: fold(plan.changes.keys()),
          actor: actor.name,
          from: actor.from,
          cause: plan.commit,
          data: generation,
        },
      ],
    )
    this.#desired.accept(plan.changes, revision)
    return { generation, diff: plan.diff, unchanged: false }
  }

  async #validSite(tree: string): Promise<Site> {
    const site = await this.#siteOf(tree)
    const problems = [...checkSite(site), ...(await checkSecrets(site, this.#identities))]
    if (problems.length > 0) throw siteInvalid(problems)
    return site
  }

  async #siteOf(tree: string): Promise<Site> {
    if (this.#latest?.tree === tree) return this.#latest.site
    const repo: Repository = this.#workspace.repo
    const site = await openSite(gitSource(repo, tree), this.#latest?.site)
    this.#latest = { tree, site }
    return site
  }

  #diff(site: Site, changes: DesiredChanges): SiteDiff {
    const before = new Map(
      [...changes.keys()].flatMap(name => {
        const old = this.#desired.get(name)
        return old === undefined ? [] : [[name, old.value] as const]
      }),
    )
    const after = new Map([...changes].flatMap(([name, value]) => (value === null ? [] : [[name, value] as const])))
    return diffSites(before, after, (name, path) => locate(site, name, path))
  }
}

export interface ControlOptions {
  /** age identities with which the site's secrets can be opened, to check that they can. */
  readonly identities?: readonly string[]
  readonly now?: () => Date
}

/** Written by builds, and of no meaning to what nodes should be: whether it is committed yet holds up nobody. */
const LOCK = /^images\/[^/]+\/lock\.json$/

function refuseDirty(dirty: readonly string[]): void {
  if (dirty.length === 0) return
  const shown = dirty.slice(0, 5).join(', ') + (dirty.length > 5 ? ` and ${dirty.length - 5} more` : '')
  throw new MusterError('SITE_DIRTY', `the site has changes that are not committed: ${shown}`)
}
