package watch

import "golang.org/x/sys/unix"

// onNetwork reports whether other machines may change files in the folder without this kernel's
// knowledge. It returns true for network file systems, and for file systems that the host of a
// virtual machine shares with it.
func onNetwork(folder string) bool {
	const (
		vboxsf = 0x786f4256
		afs    = 0x5346414f
		gfs2   = 0x01161970
		vmhgfs = 0xbacbacbc
	)
	var stat unix.Statfs_t
	if unix.Statfs(folder, &stat) != nil {
		return false
	}
	switch uint32(stat.Type) { // the field is signed, or has another size, on some processors
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC,
		unix.V9FS_MAGIC, unix.FUSE_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC, unix.CODA_SUPER_MAGIC,
		unix.OCFS2_SUPER_MAGIC, vboxsf, afs, gfs2, vmhgfs:
		return true
	}
	return false
}
