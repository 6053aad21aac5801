package beneath

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// As returns the directory for creating with another owner.
func (d *Dir) As(owner Owner) *Dir { return &Dir{d.file, owner} }

// own sets owner and mode of an open file, whatever the umask.
func (o Owner) own(fd int, mode, shared uint32) error {
	if o.Set {
		if err := unix.Fchown(fd, o.UID, o.GID); err != nil {
			return err
		}
	}
	if o.Shared {
		mode = shared
	}
	return unix.Fchmod(fd, mode)
}

// defaultACL is the POSIX ACL by which what is created in a directory gets the
// permissions that its creator asks for, for user and group, without those of the umask.
var defaultACL = acl(7, 7, 0)

const defaultACLName = "system.posix_acl_default"

// acl is an ACL without named users and groups, in the kernel's format.
func acl(user, group, other uint16) []byte {
	const version, unnamed = 2, 0xffffffff
	b := binary.LittleEndian.AppendUint32(nil, version)
	for _, e := range [][2]uint16{{0x01, user}, {0x04, group}, {0x20, other}} {
		b = binary.LittleEndian.AppendUint16(b, e[0])
		b = binary.LittleEndian.AppendUint16(b, e[1])
		b = binary.LittleEndian.AppendUint32(b, unnamed)
	}
	return b
}

// Share lets the group of the directory use what is created in it, whatever the umask.
// On a file system without POSIX ACLs it has no effect.
func (d *Dir) Share() error {
	return d.fail("share", ".", ShareFD(d.fd()))
}

// ShareFD is [Dir.Share] for an open directory.
func ShareFD(fd int) error {
	var have [64]byte
	n, err := unix.Fgetxattr(fd, defaultACLName, have[:])
	if err == nil && bytes.Equal(have[:n], defaultACL) {
		return nil
	}
	err = unix.Fsetxattr(fd, defaultACLName, defaultACL, 0)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// SetOwner sets owner and permissions of an entry if it still is what info says. Nothing
// is opened for reading, and no link is followed.
func (d *Dir) SetOwner(info Info, uid, gid int, mode uint32) error {
	fd, err := d.openat("chown", info.Name, unix.O_PATH, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return d.fail("chown", info.Name, err)
	}
	now := infoOf(info.Name, &st)
	if now.Inode != info.Inode || now.Links != info.Links && now.Kind != Directory {
		return d.fail("chown", info.Name, unix.ESTALE) // replaced, or it got another name
	}
	if err := unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH); err != nil {
		return d.fail("chown", info.Name, err)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return nil // its permissions have no meaning
	}
	return d.fail("chmod", info.Name, unix.Fchmodat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), mode, 0))
}
