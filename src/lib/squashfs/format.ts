/**
 * Numbers of the squashfs 4.0 format that more than one part of it needs. All its fields are little endian.
 * Described at https://dr-emann.github.io/squashfs/ and in the kernel's fs/squashfs/squashfs_fs.h.
 */
export const BLOCK_LOG = 17
/** Files are cut into blocks of 128 KiB: what mksquashfs takes too, a fair trade of size against reading a page. */
export const BLOCK_SIZE = 2 ** BLOCK_LOG

/** Set in a block's size field: its bytes are stored as they are. A size of 0 is a block of zeros. */
export const STORED = 2 ** 24

/** The bytes a block takes in the image. */
export const storedLength = (field: number): number => field % STORED

export const NO_FRAGMENT = 0xffffffff
export const NO_XATTRS = 0xffffffff

/** Basic inode types; the extended form of each is 7 higher. */
export const INODE_TYPE = { directory: 1, file: 2, symlink: 3, block: 4, char: 5, fifo: 6, socket: 7 } as const
export const EXTENDED = 7

/** Time fields are unsigned 32 bits: what lies outside becomes the nearest there is. */
export const timeField = (seconds: number): number => Math.min(Math.max(Math.floor(seconds), 0), 0xffffffff)
