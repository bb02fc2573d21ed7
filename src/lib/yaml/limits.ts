/** A site is read by people: what is nested deeper than this is an accident or an attack. */
export const MAX_DEPTH = 64

/** The only local tag: a string encrypted with age. */
export const AGE_TAG = '!age'
