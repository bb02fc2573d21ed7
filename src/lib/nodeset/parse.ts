/**
 * Reads node sets as ClusterShell and Slurm write them:
 *
 *   n[001-128]            a range, zeros kept              n[1-9/2]  n[1,3,5-7]  r[1-2]n[01-04]  n[1-3]-ib
 *   n[1-3],n7  n1 n2      union, also by white space
 *   n[1-10]!n5            difference
 *   n[1-10]&@gpu          intersection
 *   n[1-3]^n[2-5]         in one but not in both
 *   @gpu  @dc2:rack[1-4]  the members of groups; @all and @* are all nodes
 *   n*  n?1               all nodes whose names match
 *
 * Operators have equal rank and are applied from the left: n[1-5],n9!n[1-3],n2 is n[2,4-5,9].
 */
import { Collector } from './collect.ts'
import { counted, Cursor, shown } from './cursor.ts'
import { expand } from './expand.ts'
import { isWild, matches } from './glob.ts'
import { NodeSet } from './set.ts'
import { readWord, type Word } from './word.ts'

export interface GroupResolver {
  /** `group` is what follows '@', with its source if one was named: 'gpu', 'dc2:rack1'. Undefined if there is none such. */
  members(group: string): Iterable<string> | undefined
  all(): Iterable<string>
}

interface ParseOptions {
  readonly groups?: GroupResolver
  /** The most names a set, or any part of it, may have. */
  readonly limit?: number
}

/** All but the union, whose operands are gathered first and united at once. */
const operators: Readonly<Record<string, (left: NodeSet, right: NodeSet) => NodeSet>> = {
  '!': (left, right) => left.difference(right),
  '&': (left, right) => left.intersection(right),
  '^': (left, right) => left.symmetricDifference(right),
}

const nameCharacters = /[\w.-]+/y
const wildCharacters = /[\w.*?-]+/y
const groupCharacters = /[\w.:*-]+/y
const operatorSign = /[,!&^]/y
const endOfOperand = /(?=[\s,!&^]|$)/y

/** A wild card with brackets is tried as so many plain ones on every name. */
const mostWildCards = 1000

export function parseNodeSet(text: string, options: ParseOptions = {}): NodeSet {
  return new Parser(text, options).parse()
}

class Parser {
  readonly #cursor: Cursor
  readonly #groups: GroupResolver | undefined
  readonly #limit: number
  #all: NodeSet | undefined

  constructor(text: string, { groups, limit = 1_000_000 }: ParseOptions) {
    this.#cursor = new Cursor(text)
    this.#groups = groups
    this.#limit = limit
  }

  parse(): NodeSet {
    const cursor = this.#cursor
    let result = new Collector()
    cursor.skipSpace()
    if (cursor.done) return NodeSet.empty
    this.#operand(result)
    for (;;) {
      cursor.skipSpace()
      if (cursor.done) return this.#collect(result)
      const at = cursor.at
      const sign = cursor.take(operatorSign)
      cursor.skipSpace()
      if (cursor.done) throw cursor.fail(`nothing follows the ${sign}`, at)
      const operator = operators[sign]
      if (operator) {
        const left = this.#collect(result)
        const right = new Collector()
        this.#operand(right)
        result = new Collector()
        result.addAll(operator(left, this.#collect(right)).patterns)
      } else this.#operand(result)
    }
  }

  #collect(collector: Collector): NodeSet {
    const set = new NodeSet(collector.collect())
    if (set.size > this.#limit) {
      throw this.#cursor.fail(`up to here ${counted(set.size)} names, the limit is ${counted(this.#limit)}`)
    }
    return set
  }

  /** Adds the next operand to the union that is being gathered. */
  #operand(union: Collector): void {
    const cursor = this.#cursor
    const at = cursor.at
    if (cursor.next === '@') this.#group(union)
    else {
      // Most operands are plain names, which need no word made of them.
      const name = cursor.take(nameCharacters)
      if (name === '' || !this.#atEnd() || !union.addName(name)) {
        cursor.at = at
        this.#word(union)
      }
    }
    // Overlapping operands may count far more than they are; looking seldom keeps many of them cheap.
    if (union.count > 2 * this.#limit) this.#collect(union)
  }

  #word(union: Collector): void {
    const cursor = this.#cursor
    const at = cursor.at
    const word = readWord(cursor, wildCharacters, this.#limit)
    if (!word || !this.#atEnd()) throw this.#unexpected(word ? undefined : 'a node')
    // Above all 'n[1-5] - n3', which is not how a difference is written.
    if (/^[.-]/.test(word.pattern)) throw cursor.fail(`no name begins with ${word.pattern[0]}`, at)
    if (isWild(word.pattern)) this.#wild(union, word, at)
    else union.addTree(word.pattern, word.tree)
  }

  #wild(union: Collector, word: Word, at: number): void {
    const cursor = this.#cursor
    if (!this.#groups) throw cursor.fail('wild cards need the list of all nodes, which is not known here', at)
    if (word.size > mostWildCards) {
      throw cursor.fail(`these are ${counted(word.size)} wild cards, the limit is ${counted(mostWildCards)}`, at)
    }
    const globs = namesOf(word)
    const all = [...this.#allNodes(this.#groups)]
    for (const name of all) if (globs.some(glob => matches(glob, name))) union.addName(name)
  }

  #group(union: Collector): void {
    const cursor = this.#cursor
    const at = cursor.at++
    const word = readWord(cursor, groupCharacters, this.#limit)
    if (!word || !this.#atEnd()) throw this.#unexpected(word ? undefined : 'the name of a group')
    const groups = this.#groups
    if (!groups) throw cursor.fail('groups are not known here', at)
    for (const group of namesOf(word)) {
      if (group === 'all' || group === '*') union.addAll(this.#allNodes(groups).patterns)
      else {
        if (isWild(group.replace(/:\*$/, ''))) throw cursor.fail('groups have no wild cards, but @* and @source:*', at)
        const members = groups.members(group)
        if (!members) throw cursor.fail(`no group is named ${group}`, at, 'GROUP_UNKNOWN')
        union.addAll(NodeSet.of(members).patterns)
      }
    }
  }

  #allNodes(groups: GroupResolver): NodeSet {
    return (this.#all ??= NodeSet.of(groups.all()))
  }

  #atEnd(): boolean {
    endOfOperand.lastIndex = this.#cursor.at
    return endOfOperand.test(this.#cursor.text)
  }

  #unexpected(wanted: string | undefined): Error {
    const { next } = this.#cursor
    if (next === ']') return this.#cursor.fail('this ] was never opened')
    if (wanted !== undefined && (next === '' || /[\s,!&^]/.test(next))) {
      return this.#cursor.fail(`expected ${wanted}, found ${shown(next)}`)
    }
    if (next === '@') return this.#cursor.fail('@ begins a group and cannot stand inside a name')
    return this.#cursor.fail(`${shown(next)} cannot be in a name`)
  }
}

function namesOf({ pattern, tree }: Word): string[] {
  const names: string[] = []
  expand(pattern, tree, names)
  return names
}
