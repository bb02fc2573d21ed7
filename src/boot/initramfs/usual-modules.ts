/**
 * What an initramfs carries of a kernel's modules, each with whatever it needs. A kernel that lacks one, or has it built in,
 * is fine. Names may have _ or -. Every one costs every boot of every machine a little: the rest is for `kernel.modules` of a
 * recipe.
 */
const names = (text: string): readonly string[] => text.split(/\s+/).filter(Boolean)

export const NETWORK = names(`
  e1000 e1000e igb igc ixgbe i40e ice tg3 bnx2x bnxt_en mlx4_en mlx5_core be2net qede sfc cxgb4 enic ionic atlantic r8169
  virtio_net virtio_pci virtio_mmio vmxnet3 hv_netvsc ena igbvf ixgbevf iavf
  realtek broadcom
  af_packet failover 8021q
`)

export const NETWORK_ARM64 = names('hns3 hclge nicpf nicvf xgene-enet mvneta mvpp2 amd-xgbe')

export const ROOT = names('loop squashfs overlay erofs')

/** Only loaded by a machine that says what it is made of. */
export const DISCOVERY = names(`
  nvme ahci sd_mod virtio_blk megaraid_sas mpt3sas smartpqi
  ipmi_si ipmi_devintf ipmi_msghandler
`)
