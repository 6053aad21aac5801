package fsquota

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls are those of quotactl_fd(2) and ioctl_xfs_fsgetxattr(2), by the kernel's
// headers linux/quota.h, linux/dqblk_xfs.h and linux/fs.h.
const (
	getAttributes = 0x801c581f // FS_IOC_FSGETXATTR
	setAttributes = 0x401c5820 // FS_IOC_FSSETXATTR
	inherit       = 0x200      // FS_XFLAG_PROJINHERIT

	projectQuota = 2        // PRJQUOTA
	getState     = 0x5808   // Q_XGETQSTATV
	getQuota     = 0x800007 // Q_GETQUOTA
	setQuota     = 0x800008 // Q_SETQUOTA
	blockLimits  = 1        // QIF_BLIMITS
	inodeLimits  = 4        // QIF_ILIMITS
	enforced     = 1 << 5   // FS_QUOTA_PDQ_ENFD
	blockSize    = 1024     // of limits, in bytes
	fileBlocks   = 4        // for each of which there can be a file: empty ones need no other block
)

// attributes is struct fsxattr.
type attributes struct {
	flags, extentSize, extents, project, copyExtentSize uint32
	_                                                   [8]byte
}

// limits is struct if_dqblk.
type limits struct {
	hardBlocks, softBlocks, used   uint64
	hardInodes, softInodes, inodes uint64
	blocksGrace, inodesGrace       uint64
	valid                          uint32
}

// state is struct fs_quota_statv.
type state struct {
	version int8
	_       uint8
	flags   uint16
	_       [156]byte
}

func ioctl(fd int, request uintptr, a *attributes) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(a))); errno != 0 {
		return errno
	}
	return nil
}

func quotactl(fd int, command, id uint32, data unsafe.Pointer) error {
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, uintptr(fd), uintptr(command<<8|projectQuota), uintptr(id), uintptr(data), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Enforced reports whether the file system of an open file keeps projects to limits.
func Enforced(fd int) bool {
	s := state{version: 1}
	return quotactl(fd, getState, 0, unsafe.Pointer(&s)) == nil && s.flags&enforced != 0
}

// Project is the project of an open file or directory; 0: none, or the file system does
// not know projects.
func Project(fd int) uint32 {
	var a attributes
	if ioctl(fd, getAttributes, &a) != nil {
		return 0
	}
	return a.project
}

// Assign moves an open file or directory to a project. What is created in a directory
// belongs to its project.
func Assign(fd int, project uint32, directory bool) error {
	var a attributes
	if err := ioctl(fd, getAttributes, &a); err != nil {
		return err
	}
	flags := a.flags &^ inherit
	if directory && project != 0 {
		flags |= inherit
	}
	if a.project == project && a.flags == flags {
		return nil
	}
	a.project, a.flags = project, flags
	return ioctl(fd, setAttributes, &a)
}

// SetLimit sets the bytes that the files of a project can have on the disk, rounded up to
// KiB, and so how many files there can be; 0: no limit. fd is of any file on the file system.
func SetLimit(fd int, project uint32, bytes int64) error {
	l := limits{hardBlocks: uint64(bytes+blockSize-1) / blockSize, valid: blockLimits | inodeLimits}
	l.hardInodes = (l.hardBlocks + fileBlocks - 1) / fileBlocks
	return quotactl(fd, setQuota, project, unsafe.Pointer(&l))
}

// Used are the bytes that the files of a project have on the disk.
func Used(fd int, project uint32) (int64, error) {
	var l limits
	err := quotactl(fd, getQuota, project, unsafe.Pointer(&l))
	return int64(l.used), err
}
