export type Pipeline = 'gitlab' | 'github'

interface PipelineFile {
  readonly path: string
  readonly text: string
}

/** Both build in a directory that is kept between runs: what has not changed is not done again. */
export const PIPELINES: Readonly<Record<Pipeline, PipelineFile>> = {
  gitlab: {
    path: '.gitlab-ci.yml',
    text: `# Builds, tests, signs and publishes the images of this site. Needs a runner as root on Debian, with muster installed.
# Settings > CI/CD > Variables: MUSTER_SERVER, MUSTER_TOKEN (masked), MUSTER_SIGNING_KEY (of the type File).
stages: [images]

images:
  stage: images
  tags: [muster]
  variables:
    GIT_DEPTH: "0" # images name the commit that last changed them
    MUSTER_DATA: /var/lib/muster-ci
  script:
    - muster ci run --locked --summary summary.md --json > result.json
  artifacts:
    when: always
    paths: [result.json, summary.md]
  rules:
    - if: $CI_COMMIT_BRANCH
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
`,
  },
  github: {
    path: '.github/workflows/muster.yml',
    text: `# Builds, tests, signs and publishes the images of this site. Needs a self-hosted runner as root on Debian, with muster installed.
# Settings > Secrets: MUSTER_SERVER, MUSTER_TOKEN, MUSTER_SIGNING_KEY (the private key itself).
name: images
on:
  push:
    branches: ["**"]
  pull_request:
jobs:
  images:
    runs-on: [self-hosted, muster]
    env:
      MUSTER_DATA: /var/lib/muster-ci
      MUSTER_SERVER: \${{ secrets.MUSTER_SERVER }}
      MUSTER_TOKEN: \${{ secrets.MUSTER_TOKEN }}
    steps:
      - uses: actions/checkout@v4
        with: { fetch-depth: 0 } # images name the commit that last changed them
      - name: Build, test, sign and publish
        env:
          KEY: \${{ secrets.MUSTER_SIGNING_KEY }}
        run: |
          umask 077
          printf '%s\\n' "$KEY" > "$RUNNER_TEMP/signing.pem"
          muster ci run --locked --signing-key "$RUNNER_TEMP/signing.pem" --summary "$GITHUB_STEP_SUMMARY"
      - if: always()
        run: rm -f "$RUNNER_TEMP/signing.pem"
`,
  },
}
