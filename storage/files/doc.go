// Package files is the file service: it lists, reads and changes the shared files for
// the portal and for programs. Each operation is authorized by the rules, its bytes are
// reserved in the project's quota before they are accepted, and it is audited.
//
// It must not know HTTP.
package files
