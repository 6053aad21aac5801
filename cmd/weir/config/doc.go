// Package config reads the settings of the program from flags, environment
// variables and a YAML file, checks them, and reports all that is wrong with
// them at once. A group of settings has a file of its own, with its parsers.
//
// It opens nothing but the files that settings name, and must not know which
// services are made of the settings.
package config
