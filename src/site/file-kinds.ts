/** The ways to say what is to be at a path of a node: of these a file has exactly one. */
export const FILE_KINDS = ['source', 'ready', 'link', 'absent'] as const
export type FileKey = (typeof FILE_KINDS)[number]
