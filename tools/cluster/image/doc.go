// Package image builds the container images of the test cluster without a
// registry: one with Jupyter, copied from the installed Debian packages of
// this machine, and the pause program. Each is an OCI archive that containerd
// imports.
//
// It must not know where the cluster runs or who uses the images.
package image
