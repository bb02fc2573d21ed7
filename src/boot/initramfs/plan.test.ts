import { describe, expect, test } from 'vitest'
import { Bench, SHELLS } from './testing.ts'

const HEX = '0123456789abcdef'.repeat(4)

describe.each(SHELLS)('the plan of a machine, read by %s', shell => {
  const plan = async (words: string): Promise<string> => {
    await using bench = await Bench.create(shell)
    const read =
      'forget_plan; if read_words <"$WORK/words"; then print_plan; else echo "wrong: $(cat "$WORK/wrong-word")"; fi'
    const { output } = await bench.run('lib plan', `printf '%s\\n' "$WORDS" >"$WORK/words"\n${read}`, { WORDS: words })
    return output
  }

  test('every key of a command line among those of others', async () => {
    const line = [
      'BOOT_IMAGE=/vmlinuz quiet console=ttyS0,115200n8 systemd.hostname=n001 muster.node=n001 muster.boot=0123456789abcdef',
      'muster.mac=52:54:00:12:34:56 muster.servers=http://10.77.0.1:7180,http://head-2.cluster:7180',
      `muster.image=sha256:${HEX} muster.root=squashfs muster.sha256=${HEX} muster.size=106954752 muster.overlay=2147483648`,
      'muster.kernel=6.1.0-54-cloud-amd64 muster.shell=1 muster.vlan=12 muster.ip=10.77.1.1/16,10.77.0.1 "muster.x=y z" single',
    ].join(' ')
    expect(await plan(line)).toBe(
      [
        'muster.node=n001',
        'muster.boot=0123456789abcdef',
        'muster.mac=52:54:00:12:34:56',
        'muster.servers=http://10.77.0.1:7180,http://head-2.cluster:7180',
        `muster.image=sha256:${HEX}`,
        'muster.root=squashfs',
        `muster.sha256=${HEX}`,
        'muster.size=106954752',
        'muster.overlay=2147483648',
        'muster.kernel=6.1.0-54-cloud-amd64',
        'muster.shell=1',
        'muster.vlan=12',
        'muster.ip=10.77.1.1/16,10.77.0.1',
        '',
      ].join('\n'),
    )
  })

  test('one key on each line, as a server sends them; half of the memory takes changes unless said otherwise', async () => {
    expect(await plan('muster.node=n017\nmuster.root=squashfs\nwait=5\n')).toBe(
      'muster.node=n017\nmuster.root=squashfs\nmuster.overlay=50%\n',
    )
  })

  test('the last of several counts, an empty one does not, and what is unknown is left out', async () => {
    expect(await plan('muster.node=a muster.node=b muster.node= muster.colour=blue * muster.vlan=7')).toBe(
      'muster.node=b\nmuster.overlay=50%\nmuster.vlan=7\n',
    )
  })

  test.each([
    'muster.node=N001',
    'muster.node=n1;reboot',
    'muster.node=$(reboot)',
    'muster.boot=../../etc',
    'muster.mac=52:54:00:12:34',
    'muster.mac=52:54:00:12:34:5g',
    'muster.mac=52-54-00-12-34-56',
    'muster.mac=::::::::::::::::::',
    'muster.servers=https://10.77.0.1',
    'muster.servers=10.77.0.1:7180',
    'muster.servers=http://10.77.0.1,',
    'muster.servers=http://a@b',
    'muster.root=nfs',
    'muster.sha256=abc',
    `muster.sha256=${HEX.toUpperCase()}`,
    `muster.image=sha256:${HEX}0`,
    'muster.size=0x10',
    'muster.size=010',
    'muster.size=-1',
    'muster.size=1234567890123456',
    'muster.overlay=101%',
    'muster.overlay=%',
    'muster.overlay=2g,mode=777',
    'muster.shell=2',
    'muster.vlan=0',
    'muster.vlan=4095',
    'muster.ip=10.77.1.1',
    'muster.ip=10.77.1/16',
    'muster.ip=10.77.1.256/16',
    'muster.ip=10.77.1.1/33',
    'muster.ip=10.77.1.1/16,gateway',
    'muster.ip=10.77.1.1.1/16',
    'muster.mode=install',
    'muster.kernel=6.1`id`',
  ])('%s is refused', async word => {
    expect(await plan(`muster.node=n001 ${word}`)).toBe(`wrong: ${word}\n`)
  })
})

describe.each(SHELLS)('a command line that does not say what is to be done, in %s', shell => {
  test.each([
    ['quiet', 'there is no muster.servers on the kernel command line'],
    ['muster.servers=http://h muster.root=squashfs', 'there is no muster.sha256 on the kernel command line'],
    ['muster.servers=ftp://h', 'muster.servers=ftp://h on the kernel command line is not understood'],
  ])('%s', async (line, problem) => {
    await using bench = await Bench.create(shell)
    const commands = 'trap \'cat "$WORK/problem"\' EXIT\nPROC=$WORK\necho "$LINE" >"$WORK/cmdline"\nread_command_line'
    expect(await bench.run('lib plan', commands, { LINE: line })).toEqual({
      output: `${problem}; look at: muster boot script NODE\n`,
      status: 1,
    })
  })
})
