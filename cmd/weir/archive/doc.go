// Package archive writes and reads backups: a tar file, compressed with gzip, of
//
//	manifest.json   what it is of, and the name, size and SHA-256 of each of its files
//	…               these files, in the same order
//	shared/…        the shared directories, if they were saved
//	end.json        the number of entries and bytes before it, and their SHA-256
//
// A reader trusts none of it: an archive that is cut off, changed, leads out of its
// directory or is larger than the disk is refused before anything is written.
package archive
