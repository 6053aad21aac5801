/*
 * mount.nfs SERVER:/PATH DIR -o OPTIONS, for nodes whose kernel has no NFS client: FUSE
 * on libnfs, NFSv4. Of the options, port and ro have a meaning. Requests have the user
 * and the first group of the caller, one at a time.
 */
#define FUSE_USE_VERSION 31
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <nfsc/libnfs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

static struct nfs_context *nfs;

static struct nfs_context *as_caller(void)
{
	struct fuse_context *caller = fuse_get_context();
	nfs_set_uid(nfs, caller->uid);
	nfs_set_gid(nfs, caller->gid);
	return nfs;
}

static int get_attributes(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	struct nfs_stat_64 s;
	int r = nfs_lstat64(as_caller(), path, &s);
	if (r < 0)
		return r;
	memset(st, 0, sizeof *st);
	st->st_ino = s.nfs_ino;
	st->st_mode = s.nfs_mode;
	st->st_nlink = s.nfs_nlink;
	st->st_uid = s.nfs_uid;
	st->st_gid = s.nfs_gid;
	st->st_size = s.nfs_size;
	st->st_blocks = s.nfs_blocks;
	st->st_mtime = s.nfs_mtime;
	st->st_ctime = s.nfs_ctime;
	return 0;
}

static int read_directory(const char *path, void *list, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	struct nfsdir *dir;
	struct nfsdirent *entry;
	int r = nfs_opendir(as_caller(), path, &dir);
	if (r < 0)
		return r;
	while ((entry = nfs_readdir(nfs, dir)))
		fill(list, entry->name, NULL, 0, 0);
	nfs_closedir(nfs, dir);
	return 0;
}

static int open_file(const char *path, struct fuse_file_info *fi)
{
	return nfs_open(as_caller(), path, fi->flags & (O_ACCMODE | O_TRUNC | O_APPEND), (struct nfsfh **)&fi->fh);
}

static int create_file(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	return nfs_open2(as_caller(), path, O_CREAT | O_RDWR, mode & 07777, (struct nfsfh **)&fi->fh);
}

static int close_file(const char *path, struct fuse_file_info *fi)
{
	return nfs_close(nfs, (struct nfsfh *)fi->fh);
}

static int read_file(const char *path, char *data, size_t size, off_t offset, struct fuse_file_info *fi)
{
	return nfs_pread(nfs, (struct nfsfh *)fi->fh, offset, size, data);
}

/* libnfs 4.0 cannot encode larger writes of NFSv4. */
static int write_file(const char *path, const char *data, size_t size, off_t offset, struct fuse_file_info *fi)
{
	size_t written = 0;
	while (written < size) {
		size_t part = size - written < 1024 ? size - written : 1024;
		int r = nfs_pwrite(nfs, (struct nfsfh *)fi->fh, offset + written, part, data + written);
		if (r <= 0)
			return written ? (int)written : r;
		written += r;
	}
	return written;
}

static int make_directory(const char *path, mode_t mode) { return nfs_mkdir2(as_caller(), path, mode & 07777); }
static int remove_directory(const char *path) { return nfs_rmdir(as_caller(), path); }
static int remove_file(const char *path) { return nfs_unlink(as_caller(), path); }
static int move_file(const char *from, const char *to, unsigned int flags) { return flags ? -EINVAL : nfs_rename(as_caller(), from, to); }
static int cut_file(const char *path, off_t size, struct fuse_file_info *fi) { return nfs_truncate(as_caller(), path, size); }
static int set_times(const char *path, const struct timespec times[2], struct fuse_file_info *fi) { return 0; }

static const struct fuse_operations operations = {
	.getattr = get_attributes, .readdir = read_directory, .open = open_file, .create = create_file, .release = close_file,
	.read = read_file, .write = write_file, .mkdir = make_directory, .rmdir = remove_directory, .unlink = remove_file,
	.rename = move_file, .truncate = cut_file, .utimens = set_times,
};

static char *option(char *options, const char *name)
{
	size_t length = strlen(name);
	for (char *one = strtok(options, ","); one; one = strtok(NULL, ","))
		if (!strncmp(one, name, length) && (one[length] == 0 || one[length] == '='))
			return one[length] ? one + length + 1 : one;
	return NULL;
}

int main(int argc, char **argv)
{
	char *options = "", *port, *path, url[4096];
	for (int i = 3; i + 1 < argc; i++)
		if (!strcmp(argv[i], "-o"))
			options = argv[i + 1];
	if (argc < 3 || !(path = strstr(argv[1], ":/"))) {
		fprintf(stderr, "usage: mount.nfs SERVER:/PATH DIR -o OPTIONS\n");
		return 1;
	}
	*path++ = 0;
	port = option(strdup(options), "port");
	snprintf(url, sizeof url, "nfs://%s%s?version=4&nfsport=%s", argv[1], path, port ? port : "2049");
	nfs = nfs_init_context();
	struct nfs_url *at = nfs_parse_url_dir(nfs, url);
	if (!at || nfs_mount(nfs, at->server, at->path)) {
		fprintf(stderr, "mount.nfs: %s: %s\n", url, nfs_get_error(nfs));
		return 32;
	}
	char *fuse[] = {argv[0], "-s", "-o", option(strdup(options), "ro") ? "allow_other,ro,fsname=nfs" : "allow_other,fsname=nfs", argv[2], NULL};
	return fuse_main(5, fuse, &operations, NULL) ? 32 : 0;
}
