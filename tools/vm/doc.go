// Package vm runs a test again in a virtual machine, for what the kernel of this machine
// may lack, such as quotas of file systems. It emulates the processor, so it needs no
// hardware support, and is slow.
//
// It must not know what is tested.
package vm
