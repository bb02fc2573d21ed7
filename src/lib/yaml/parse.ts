import { type Document, type LineCounter, parseDocument } from 'yaml'

/** The `yaml` package set up as site files want it: the YAML 1.2 core schema, whatever the file says. */
export function parseNodes(
  text: string,
  options: { lineCounter?: LineCounter; keepSourceTokens?: boolean } = {},
): Document.Parsed {
  return parseDocument(text, {
    ...options,
    // Keys are compared by their text in full.ts; the package compares each with all before it, which takes seconds in a
    // file of 20,000 nodes.
    uniqueKeys: false,
    // Without this the package adds a picture of the line to each message.
    prettyErrors: false,
    // Said so that a %YAML directive in the file cannot turn `yes` into true.
    schema: 'core',
    merge: false,
    resolveKnownTags: false,
  })
}
