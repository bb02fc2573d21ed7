/**
 * Licences in SPDX's words. Distributions write them in many ways; only what is an expression of SPDX may be passed on
 * as one, everything else has to be quoted as the packager wrote it.
 */
export function isSpdxExpression(text: string): boolean {
  const words = text.match(/[()]|[^\s()]+/g) ?? []
  if (words.length > MAX_WORDS) return false
  let at = 0
  const alternatives = (): boolean => {
    if (!single()) return false
    while (words[at] === 'AND' || words[at] === 'OR') {
      at++
      if (!single()) return false
    }
    return true
  }
  const single = (): boolean => {
    const word = words[at++]
    if (word === '(') return alternatives() && words[at++] === ')'
    // `+` for «or later» is behind the id.
    if (word === undefined || !(LICENCES.has(word) || LICENCES.has(word.replace(/\+$/, '')))) return false
    if (words[at] !== 'WITH') return true
    at++
    return EXCEPTIONS.has(words[at++] ?? '')
  }
  return alternatives() && at === words.length
}

/** The longest known, of texlive, has some 200. */
const MAX_WORDS = 1000

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/))

/** Those that packages of distributions name; the whole list has six hundred more. Not knowing one does no harm. */
const LICENCES = words(`
  0BSD AFL-2.1 AFL-3.0 AGPL-3.0-only AGPL-3.0-or-later Apache-1.1 Apache-2.0 APSL-2.0 Artistic-1.0 Artistic-1.0-Perl
  Artistic-2.0 Beerware BlueOak-1.0.0 Boehm-GC BSD-1-Clause BSD-2-Clause BSD-2-Clause-Patent BSD-3-Clause
  BSD-3-Clause-Clear BSD-3-Clause-LBNL BSD-4-Clause BSD-4-Clause-UC BSD-Source-Code BSL-1.0 bzip2-1.0.6 CC-BY-3.0
  CC-BY-4.0 CC-BY-SA-3.0 CC-BY-SA-4.0 CC0-1.0 CDDL-1.0 CDDL-1.1 CECILL-2.1 CECILL-C CPL-1.0 curl EPL-1.0 EPL-2.0
  EUPL-1.2 FSFAP FSFUL FSFULLR FSFULLRWD FTL GFDL-1.1-or-later GFDL-1.2-only GFDL-1.2-or-later GFDL-1.3-only
  GFDL-1.3-or-later GFDL-1.3-no-invariants-or-later GPL-1.0-only GPL-1.0-or-later GPL-2.0 GPL-2.0-only
  GPL-2.0-or-later GPL-3.0 GPL-3.0-only GPL-3.0-or-later HPND HPND-sell-variant ICU IJG ImageMagick Info-ZIP
  ISC JSON LGPL-2.0-only LGPL-2.0-or-later LGPL-2.1 LGPL-2.1-only LGPL-2.1-or-later LGPL-3.0
  LGPL-3.0-only LGPL-3.0-or-later Libpng libpng-2.0 libtiff libutil-David-Nugent Linux-man-pages-copyleft LPPL-1.3c
  MIT MIT-0 MIT-CMU MIT-feh MIT-Modern-Variant MITNFA MPL-1.0 MPL-1.1 MPL-2.0 MS-PL NAIST-2003 NCSA Net-SNMP NTP
  OFL-1.1 OLDAP-2.8 OpenSSL PHP-3.01 PostgreSQL PSF-2.0 Python-2.0 Python-2.0.1 QPL-1.0 Ruby SGI-B-2.0
  SISSL Sleepycat SMLNJ SSH-OpenSSH SSH-short Sendmail TCL TCP-wrappers UCD Unicode-3.0 Unicode-DFS-2015
  Unicode-DFS-2016 Unlicense UPL-1.0 Vim W3C WTFPL X11 X11-distribute-modifications-variant XFree86-1.1 Xnet
  xinetd Zlib zlib-acknowledgement ZPL-2.0 ZPL-2.1
`)

const EXCEPTIONS = words(`
  Autoconf-exception-2.0 Autoconf-exception-3.0 Autoconf-exception-generic Bison-exception-2.2 Classpath-exception-2.0
  eCos-exception-2.0 Font-exception-2.0 GCC-exception-2.0 GCC-exception-3.1 GNU-compiler-exception
  gnu-javamail-exception GPL-CC-1.0 Libtool-exception Linux-syscall-note LLVM-exception OCaml-LGPL-linking-exception
  OpenSSL-exception openvpn-openssl-exception Qt-GPL-exception-1.0 Texinfo-exception u-boot-exception-2.0
  Universal-FOSS-exception-1.0 WxWindows-exception-3.1 x11vnc-openssl-exception
`)
