// Package storagetest is the table of cases that every way to the shared files must pass:
// the file service, the REST API and the mounts of workspaces. A test implements [Medium]
// and calls [Run].
//
// It must not know how a medium reaches the files.
package storagetest
