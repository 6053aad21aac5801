package handlers

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"weir/models"
	"weir/storage/storagetest"
)

// The REST API decides as every other way to the shared files.
func TestRESTFollowsTheRules(t *testing.T) {
	w := newWorld(t)
	c := storagetest.New(t, w.store, w.app.Directories)
	tokens := map[string]string{}
	for name, u := range c.Users {
		tokens[name] = w.token(u.Email)
	}
	storagetest.Run(t, c, storagetest.Medium{Try: func(t *testing.T, who string, op storagetest.Op, path string) bool {
		at, query := "/projects/"+id(c.Project)+"/files", "?path="+url.QueryEscape(path)
		var a answer
		switch op {
		case storagetest.List:
			a = w.send(tokens[who], http.MethodGet, at+query, "")
			if a.status == http.StatusOK && !strings.Contains(a.raw, `"name":"file"`) {
				return false
			}
		case storagetest.Read:
			a = w.send(tokens[who], http.MethodGet, at+"/checksum"+query, "")
		case storagetest.Download:
			a = w.send(tokens[who], http.MethodGet, at+"/content"+query, "")
		case storagetest.Write, storagetest.Create:
			a = w.send(tokens[who], http.MethodPut, at+"/content"+query, "by REST")
		case storagetest.Mkdir:
			a = w.send(tokens[who], http.MethodPost, at+"/directories", `{"path":"`+models.FilePath(path).String()+`"}`)
		case storagetest.Remove:
			a = w.send(tokens[who], http.MethodDelete, at+query, "")
		}
		switch a.status {
		case http.StatusForbidden, http.StatusNotFound:
			return false
		case http.StatusOK, http.StatusCreated:
			return true
		}
		t.Fatalf("%s %s %s: %d %s", who, op, path, a.status, a.raw)
		return false
	}})
}
