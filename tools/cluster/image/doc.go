// Package image makes the container images of the test cluster without a
// registry: one with Jupyter, copied from the Debian packages that are
// installed on this machine, and the pause program that holds a pod's
// namespaces. Each is an OCI archive that containerd imports.
//
// It must not know where the cluster runs or who uses the images.
package image
