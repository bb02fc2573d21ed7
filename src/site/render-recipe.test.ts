import { describe, expect, test } from 'vitest'
import { formatProblem } from './problems.ts'
import { checkRecipes, circleText, readRecipe, recipeNames } from './render-recipe.ts'
import { type Files, failureOf, format, problemsOf, siteOf } from './testing.ts'

const RECIPE = 'images/base/image.yaml'

/** The recipe `base` of a site with these files; it must be right. */
async function recipeIn(files: Files) {
  const read = readRecipe(await siteOf(files), 'base')
  expect(read.problems.map(formatProblem)).toEqual([])
  if (read.recipe === undefined) throw new Error('right, and yet not there')
  return { ...read, recipe: read.recipe }
}

const base = (text: string, more: Files = {}): Files => ({ [RECIPE]: `from: { debian: bookworm }\n${text}`, ...more })
const site = (text: string): Files => ({ 'site.yaml': `site: demo\ndefaults:\n  boot: { image: base }\n${text}` })

describe('which recipes there are', () => {
  const files = base('', { 'images/gpu/image.yaml': 'from: { image: base }\n', 'images/gpu/files/motd': 'x' })

  test('every folder of images/ with an image.yaml', async () => {
    expect(recipeNames(await siteOf(files))).toEqual(['base', 'gpu'])
  })

  test('another one is unknown, told with the nearest name', async () => {
    const found = await siteOf(files)
    expect(await failureOf(() => readRecipe(found, 'gpuu'))).toBe(
      'RECIPE_UNKNOWN: there is no recipe gpuu — did you mean gpu?',
    )
    expect(await failureOf(() => readRecipe(found, 'zzz'))).toBe('RECIPE_UNKNOWN: there is no recipe zzz')
  })
})

test('a recipe is read with its name, its file and where its values stand', async () => {
  const read = await recipeIn(base('packages:\n  - bash\nsteps: [{ run: ldconfig }]\n'))
  expect([read.name, read.file, read.usesVars]).toEqual(['base', RECIPE, false])
  expect(read.recipe.from).toEqual({ kind: 'debian', settings: { suite: 'bookworm', components: ['main'] } })
  expect(read.placeOf(['packages', '0'])).toMatchObject({ line: 3, column: 5 })
  expect(read.placeOf(['steps', '0', 'run'])).toMatchObject({ line: 4, column: 16 })
  expect(read.placeOf(['nowhere'])).toEqual({ line: 1, column: 1 })
})

test('one that is wrong has problems instead', async () => {
  const read = readRecipe(await siteOf(base('arch: vax\n')), 'base')
  expect(read.recipe).toBeUndefined()
  expect(read.problems.map(formatProblem)).toEqual([`${RECIPE}:2:7: arch: must be one of amd64, arm64`])
})

describe('templates', () => {
  test('see vars, the name of the image and of the site', async () => {
    const { recipe, context } = await recipeIn(
      base('vars: { level: 3 }\nsteps:\n  - run: "echo {{ name }} of {{ site }} {{ vars.level }}"\n'),
    )
    expect(recipe.steps[0]?.run).toBe('echo base of demo 3')
    expect(context).toEqual({ vars: { level: 3 }, name: 'base', site: 'demo' })
  })

  test('may stand wherever text may, and give what is wanted there', async () => {
    const { recipe, usesVars } = await recipeIn({
      [RECIPE]: `from: { debian: { suite: "{{ vars.suite }}", mirrors: "{{ vars.mirrors }}" } }
vars: { suite: trixie, mirrors: [http://a.example/], gigabytes: 2, isOnline: true, extra: { A: 1 } }
limits: { size: "{{ vars.gigabytes }} GB" }
steps:
  - run: "true"
    network: "{{ vars.isOnline }}"
    env: "{{ vars.extra }}"
`,
    })
    expect(recipe.from).toEqual({
      kind: 'debian',
      settings: { suite: 'trixie', mirrors: ['http://a.example/'], components: ['main'] },
    })
    expect(recipe.limits).toEqual({ size: 2_000_000_000 })
    expect(recipe.steps).toEqual([{ run: 'true', network: true, env: { A: '1' } }])
    expect(usesVars).toBe(true)
  })

  test('a list adds its items to the list it stands in', async () => {
    const { recipe } = await recipeIn(
      base('vars: { more: [b, c], none: [] }\npackages: [a, "{{ vars.more }}", "{{ vars.none }}", d]\n'),
    )
    expect(recipe.packages).toEqual(['a', 'b', 'c', 'd'])
  })

  test('a list in place of a list is that list', async () => {
    const { recipe } = await recipeIn(base('vars: { more: [b, c] }\npackages: "{{ vars.more }}"\n'))
    expect(recipe.packages).toEqual(['b', 'c'])
  })

  test('a list that is written in a list stays what it is', async () => {
    expect(await problemsOf(base('packages: [a, [b, c]]\n'))).toEqual([`${RECIPE}:2:15: packages.1: must be text`])
  })

  test('what comes after such a list is still told at its own place', async () => {
    const text = 'vars: { more: [b, -c] }\npackages: [a, "{{ vars.more }}", -d]\n'
    const wrong = 'is not the name of a package, with =VERSION where one is wanted'
    expect(await problemsOf(base(text))).toEqual([
      `${RECIPE}:3:15: packages.2: ${wrong}`,
      `${RECIPE}:3:34: packages.3: ${wrong}`,
    ])
  })

  test('of vars may be made of other vars, and are no part of the recipe as it is written', async () => {
    const { recipe, context } = await recipeIn(
      base('vars: { major: 12, suite: "d{{ vars.major }}" }\nsteps: [{ run: "echo {{ vars.suite }}" }]\n'),
    )
    expect(recipe.steps[0]?.run).toBe('echo d12')
    expect(context['vars']).toEqual({ major: 12, suite: 'd12' })
  })

  test('variables for a playbook are rendered too: only the vars on top are not', async () => {
    const { recipe, usesVars } = await recipeIn(
      base('vars: { a: 1 }\nsteps: [{ ansible: a/play.yaml, vars: { x: "{{ vars.a }}" } }]\n'),
    )
    expect(recipe.steps[0]?.vars).toEqual({ x: 1 })
    expect(usesVars).toBe(true)
  })

  test('keys are left as they are', async () => {
    const { recipe } = await recipeIn(base('vars: { a: b }\nfiles: { "/etc/{{ vars.a }}": motd }\n'))
    expect(recipe.files).toEqual({ '/etc/{{ vars.a }}': 'motd' })
  })
})

describe('templates that fail', () => {
  test('a name that nobody defines, where it stands', async () => {
    expect(await problemsOf(base('packages:\n  - bash\n  - "{{ vars.editor }}"\n'))).toEqual([
      `${RECIPE}:4:5: packages.1: vars.editor is not defined`,
    ])
  })

  test('each at its own place, and nothing else: the rest is checked once they are right', async () => {
    expect(
      await problemsOf(
        base('arch: "{{ vars.arch }}"\nsteps:\n  - run: "{{ vars.a }}"\n    env: { A: "{{ b }}" }\nzzz: 1\n'),
      ),
    ).toEqual([
      `${RECIPE}:2:7: arch: vars.arch is not defined`,
      `${RECIPE}:4:10: steps.0.run: vars.a is not defined`,
      `${RECIPE}:5:15: steps.0.env.A: b is not defined`,
    ])
  })

  test.each([
    ['{{ vars.a if vars.b else vars.c }}', 'vars.b is not defined'],
    ["{% for x in vars.list %}{{ x }}{{ vars['z'] }}{% endfor %}", 'vars.z is not defined'],
    ['{{ vars.lsit }}', 'vars.lsit is not defined — did you mean list?'],
    ['{{ vars.a is string and nmae }}', 'nmae is not defined — did you mean name?'],
  ])('only what is missing is named: %s', async (template, message) => {
    expect(
      await problemsOf(base(`vars: { a: x, list: [1] }\nsteps: [{ run: ${JSON.stringify(template)} }]\n`)),
    ).toEqual([`${RECIPE}:3:16: steps.0.run: ${message}`])
  })

  test('the cause behind a value that is used, and not that this value is missing', async () => {
    const vars = 'vars: { a: "{{ vars.rack }}", rack: "{{ index // 3 }}", other: "{{ index }}" }\n'
    expect(await problemsOf(base(`${vars}steps: [{ run: "echo {{ vars.a }}" }]\n`))).toEqual([
      `${RECIPE}:2:31: vars.rack: invalid operation: tried to use // operator on unsupported types none and number`,
    ])
  })

  test('one that does not read', async () => {
    expect(await problemsOf(base('packages: ["{{ vars.more"]\n'))).toEqual([
      `${RECIPE}:2:12: packages.0: syntax error: unexpected end of input, expected end of variable block`,
    ])
  })

  test('what it gives does not fit', async () => {
    expect(await problemsOf(base('vars: { arch: vax }\narch: "{{ vars.arch }}"\n'))).toEqual([
      `${RECIPE}:3:7: arch: must be one of amd64, arm64`,
    ])
  })

  test('a value that is made of itself, where it is defined', async () => {
    expect(await problemsOf(base('vars: { a: "x{{ vars.a }}" }\npackages: ["{{ vars.a }}"]\n'))).toContain(
      `${RECIPE}:2:9: vars.a: depends on itself through vars.a`,
    )
  })

  describe('values that only a node has', () => {
    const RACK = 'vars: { rack: "{{ index // 32 }}", level: 3 }\n'
    const racks = site('  vars: { rack: "{{ index // 32 }}" }\n')

    test.each<readonly [string, Files]>([
      ['in the recipe', base(`${RACK}packages: ["a{{ vars.level }}"]\n`)],
      ['in the site', base('packages: [a]\n', racks)],
    ])('are nobody’s business while they are not used: %s', async (_, files) => {
      expect((await recipeIn(files)).context['vars']).not.toHaveProperty('rack')
      expect(await problemsOf(files)).toEqual([])
    })

    test('are told where they are defined once they are used', async () => {
      const problems = await problemsOf(base('packages: ["rack{{ vars.rack }}"]\n', racks))
      expect(problems.map(line => line.split(': ').slice(0, 2).join(': '))).toEqual(['site.yaml:4:11: vars.rack'])
    })

    test('also when something takes all vars at once', async () => {
      const problems = await problemsOf(base(`${RACK}steps: [{ run: "echo {{ vars | length }}" }]\n`))
      expect(problems.map(line => line.split(': ').slice(0, 2).join(': '))).toEqual([`${RECIPE}:2:9: vars.rack`])
    })

    test('index itself', async () => {
      expect(await problemsOf(base('packages: ["n{{ index }}"]\n'))).toEqual([
        `${RECIPE}:2:12: packages.0: index is not defined`,
      ])
    })
  })
})

describe('where vars come from', () => {
  const OWN = 'vars: { suite: recipe, level: 1 }\n'
  const PACKAGE = 'packages: ["{{ vars.suite }}-{{ vars.level }}"]\n'
  const DEFAULTS = site('  vars: { suite: defaults }\n')
  const GROUPS: Files = {
    'groups/linux.yaml': 'vars: { suite: linux, tools: [a] }\n',
    'groups/gpu.yaml': 'groups: [linux]\nvars: { suite: gpu, tools+: [b] }\n',
    'groups/fast.yaml': 'vars: { suite: fast }\n',
  }

  test.each<readonly [string, Files, string]>([
    ['the recipe alone', base(OWN + PACKAGE), 'recipe-1'],
    ['the site’s defaults are above it', base(OWN + PACKAGE, DEFAULTS), 'defaults-1'],
    ['a group is above the defaults', base(`${OWN + PACKAGE}group: fast\n`, { ...DEFAULTS, ...GROUPS }), 'fast-1'],
    ['the groups it builds on are below it', base(`${OWN + PACKAGE}group: gpu\n`, { ...DEFAULTS, ...GROUPS }), 'gpu-1'],
    ['of two groups the later is above', base(`${OWN + PACKAGE}group: [gpu, fast]\n`, GROUPS), 'fast-1'],
    ['and the other way round', base(`${OWN + PACKAGE}group: [fast, gpu]\n`, GROUPS), 'gpu-1'],
    ['a group it does not name is none of its business', base(OWN + PACKAGE, GROUPS), 'recipe-1'],
  ])('%s', async (_, files, name) => {
    expect((await recipeIn(files)).recipe.packages).toEqual([name])
  })

  test('a list grows along the groups, so that each brings its own packages', async () => {
    const { recipe } = await recipeIn(
      base('vars: { tools: [z] }\npackages: [bash, "{{ vars.tools }}"]\ngroup: gpu\n', {
        ...GROUPS,
        'groups/linux.yaml': 'vars: { tools+: [a] }\n',
      }),
    )
    expect(recipe.packages).toEqual(['bash', 'z', 'a', 'b'])
  })

  test('the other values of those layers are not seen', async () => {
    const { context } = await recipeIn(
      base(`${OWN}group: fast\n`, { ...GROUPS, 'groups/fast.yaml': 'domain: a.example\n' }),
    )
    expect(context).toEqual({ vars: { suite: 'recipe', level: 1 }, name: 'base', site: 'demo' })
  })

  test('a value that is taken away is not defined', async () => {
    const files = base(`${OWN + PACKAGE}group: fast\n`, { 'groups/fast.yaml': 'vars: { level: null }\n' })
    expect(await problemsOf(files)).toEqual([`${RECIPE}:3:12: packages.0: vars.level is not defined`])
  })

  test('a value of a group that fails is told in the group', async () => {
    const files = base('packages: ["{{ vars.a }}"]\ngroup: fast\n', {
      'groups/fast.yaml': 'vars:\n  a: "{{ nobody }}"\n',
    })
    expect(await problemsOf(files)).toContain('groups/fast.yaml:2:3: vars.a: nobody is not defined')
  })

  test('two recipes of one site do not see each other’s', async () => {
    const found = await siteOf({
      ...base(OWN + PACKAGE),
      'images/other/image.yaml': `from: { tar: a }\nvars: { suite: other }\n`,
    })
    expect(readRecipe(found, 'base').context['vars']).toEqual({ suite: 'recipe', level: 1 })
    expect(readRecipe(found, 'other').context['vars']).toEqual({ suite: 'other' })
  })

  test.each<readonly [string, string, string]>([
    ['one', 'group: gpuu\n', '2:8: group: there is no group gpuu — did you mean gpu?'],
    ['one of several', 'group:\n  - fast\n  - gpuu\n', '4:5: group: there is no group gpuu — did you mean gpu?'],
    ['one like no other', 'group: [zzzzz]\n', '2:9: group: there is no group zzzzz'],
  ])('a group that is not there: %s', async (_, text, line) => {
    expect(await problemsOf(base(text, GROUPS))).toEqual([`${RECIPE}:${line}`])
  })

  test('a group that is a map', async () => {
    expect(await problemsOf(base('group: { gpu: 1 }\n', GROUPS))).toEqual([`${RECIPE}:2:8: group: must be text`])
  })
})

/** images({ gpu: 'base' }): gpu is built on base. */
const images = (on: Readonly<Record<string, string>>): Files => ({
  'images/base/image.yaml': 'from: { debian: bookworm }\n',
  ...Object.fromEntries(
    Object.entries(on).map(([name, image]) => [
      `images/${name}/image.yaml`,
      `arch: amd64\nfrom: { image: ${image} }\n`,
    ]),
  ),
})

describe('images built on images', () => {
  test('a line of them is fine, and so is one that nobody wrote: it may be imported', async () => {
    expect(await problemsOf(images({ compute: 'base', gpu: 'compute', tiny: 'imported' }))).toEqual([])
  })

  test.each<readonly [string, Readonly<Record<string, string>>, readonly string[]]>([
    ['on itself', { a: 'a' }, ['images/a/image.yaml:2:16: from.image: CIRCLE: a → a']],
    ['of two', { a: 'b', b: 'a' }, ['images/a/image.yaml:2:16: from.image: CIRCLE: a → b → a']],
    [
      'of three, told once, though others are built on it',
      { a: 'c', b: 'd', c: 'd', d: 'b', e: 'b' },
      ['images/d/image.yaml:2:16: from.image: CIRCLE: d → b → d'],
    ],
    [
      'two of them',
      { a: 'b', b: 'a', c: 'd', d: 'c' },
      [
        'images/a/image.yaml:2:16: from.image: CIRCLE: a → b → a',
        'images/c/image.yaml:2:16: from.image: CIRCLE: c → d → c',
      ],
    ],
  ])('a circle %s', async (_, on, lines) => {
    const words = 'images are built on each other in a circle'
    expect(await problemsOf(images(on))).toEqual(lines.map(line => line.replace('CIRCLE', words)))
  })

  test('a circle that only shows once templates are rendered', async () => {
    expect(await problemsOf({ [RECIPE]: 'from: { image: "{{ vars.under }}" }\nvars: { under: base }\n' })).toEqual([
      `${RECIPE}:1:16: from.image: ${circleText(['base', 'base'])}`,
    ])
  })

  test('one that is wrong ends the line: its own problem is enough', async () => {
    const files = { ...images({ a: 'b' }), 'images/b/image.yaml': 'from: { image: a }\nzzz: 1\n' }
    expect(await problemsOf(files)).toEqual(['images/b/image.yaml:2:1: zzz: unknown key'])
  })
})

test('every recipe of a site is checked, and no template of one disturbs the others', async () => {
  const found = await siteOf({
    'images/a/image.yaml': 'from: { tar: "{{ vars.a }}" }\n',
    'images/b/image.yaml': 'from: {}\n',
    'images/c/image.yaml': 'from: { tar: a\n',
  })
  const problems = format(checkRecipes(found))
  expect(problems.slice(0, 2)).toEqual([
    'images/a/image.yaml:1:14: from.tar: vars.a is not defined',
    'images/b/image.yaml:1:7: from: is empty: it must name one base',
  ])
  // The words are those of the YAML library.
  expect(problems.slice(2)).toEqual([expect.stringMatching(/^images\/c\/image\.yaml:\d+:\d+: /)])
})
