import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Lab, makeLab } from './testing.ts'

/** Other people's tools, as they are: the examples of docs/how-to/tests.md. */
let lab: Lab
beforeAll(async () => {
  lab = await makeLab()
})
afterAll(() => lab[Symbol.asyncDispose]())

interface Result {
  readonly id: string
  readonly attribute: string
  readonly status: string
  readonly message?: string
}

async function resultsOf(image: string): Promise<Result[]> {
  const { stdout, stderr } = await lab.muster(['image', 'test', image, '--json'])
  if (stdout === '') throw new Error(stderr)
  return (JSON.parse(stdout) as { results: Result[] }).results
}

it('testinfra looks at an image from outside', async () => {
  await lab.recipe('infra', 'from: { directory: ../../../root }\noutputs: [squashfs]\n', {
    'tests/infra.yaml': `exec:
  testinfra:
    on: outside
    run: |
      report=$(mktemp)
      /usr/bin/python3 -m pytest -q -p no:cacheprovider --connection=chroot --hosts="$MUSTER_ROOT" --junit-xml="$report" "$MUSTER_TESTS" >&2
      code=$?
      cat "$report"
      rm "$report"
      exit $code
    reads: junit
    exit-codes: [0, 1]
`,
    'tests/test_users.py': `def test_users_are_there(host):
    assert host.file("/etc/passwd").exists


def test_nobody_is(host):
    assert not host.file("/etc/passwd").exists
`,
  })
  const results = await resultsOf('infra')
  expect(results.map(({ attribute, status }) => [attribute.replace(/^.*(test_\w+).*$/, '$1'), status])).toEqual([
    ['test_users_are_there', 'passed'],
    ['test_nobody_is', 'failed'],
  ])
})

it("OpenSCAP holds an image against a distribution's security guide, and its score is gated", async () => {
  const guide = '/usr/share/xml/scap/ssg/content/ssg-debian11-ds.xml'
  const scan = (score: number): string => `exec:
  hardening:
    on: outside
    run: |
      results=$(mktemp)
      OSCAP_PROBE_ROOT="$MUSTER_ROOT" oscap xccdf eval --results "$results" \\
        --profile xccdf_org.ssgproject.content_profile_anssi_np_nt28_minimal ${guide} >&2
      code=$?
      cat "$results"
      rm "$results"
      exit $code
    reads: oscap
    min-score: ${score}
`
  // The guide of this Debian is for the one before: it only looks at such a root.
  const recipe = `from: { directory: ../../../root }
outputs: [squashfs]
steps:
  - run: |
      mkdir -p /var/lib/dpkg && : >/var/lib/dpkg/status
      echo 11.9 >/etc/debian_version
      printf 'ID=debian\\nVERSION_ID="11"\\n' >/etc/os-release
`
  await lab.recipe('scanned', recipe, { 'tests/oscap.yaml': scan(20) })
  const rules = await resultsOf('scanned')
  expect(rules.length).toBeGreaterThan(10)
  // With a score to reach, single rules are shown and do not decide.
  expect(rules.filter(({ status }) => status === 'failed')).toEqual([])
  expect(rules.find(({ attribute }) => attribute === 'package_telnetd_removed')?.status).toBe('passed')
  await lab.recipe('scanned', recipe, { 'tests/oscap.yaml': scan(99) })
  const failed = (await resultsOf('scanned')).filter(({ status }) => status === 'failed')
  expect(failed.map(({ attribute }) => attribute)).toEqual(['score'])
})
