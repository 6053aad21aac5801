// Package requests keeps what people ask for and may not take by themselves,
// has it decided by whoever could change it directly, and tells people of the
// ends of projects and participations. What is approved it changes through
// package projects, under its rules, in the transaction of the decision.
//
// It must not know how a change is made, nor HTTP.
package requests
