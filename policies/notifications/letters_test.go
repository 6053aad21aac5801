package notifications

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
)

var linkPattern = regexp.MustCompile(regexp.QuoteMeta(origin) + `/(\w+)\?token=([\w-]+)`)

// linkIn is the link in an email, as its page and secret.
func (w *world) linkIn(mail string) (page, secret string) {
	w.Helper()
	_, _, body := read(w, mail)
	m := linkPattern.FindStringSubmatch(body)
	if m == nil {
		w.Fatalf("no link in %q", body)
	}
	return m[1], m[2]
}

// An email for a new password goes to the address of an account alone, in its
// language, and its link works.
func TestPasswordLetter(t *testing.T) {
	each(t, func(w *world) {
		p := newPost(w, false)
		w.mails(p, "")
		if err := w.service.SetPreference(w.Context(), policies.Actor{User: w.ada}, false, "zh"); err != nil {
			w.Fatal(err)
		}
		for _, email := range []string{"ada@example.org", "nobody@example.org"} {
			if err := w.accounts.ForgotPassword(w.Context(), email); err != nil {
				w.Fatal(err)
			}
		}
		w.settle(w.sender)
		if len(p.letters) != 1 {
			w.Fatalf("%d letters, want one", len(p.letters))
		}
		head, subject, _ := read(w, p.letters[0])
		if !strings.Contains(head.Get("To"), "ada@example.org") || !strings.Contains(subject, "设置新密码") {
			w.Errorf("the letter is to %q: %q", head.Get("To"), subject)
		}
		for _, d := range w.deliveries() {
			if want := map[string]string{"ada@example.org": models.DeliveryDelivered, "nobody@example.org": models.DeliveryGivenUp}[d.UserEmail]; d.State != want || d.Attempts != 1 {
				w.Errorf("the letter to %s is %s after %d attempts, want %s", d.UserEmail, d.State, d.Attempts, want)
			}
		}
		page, secret := w.linkIn(p.letters[0])
		if u, err := w.accounts.SetPasswordByLink(w.Context(), secret, "correct horse battery"); err != nil || u.ID != w.ada.ID || page != "password" {
			w.Errorf("/%s: %+v, %v", page, u, err)
		}
	})
}

// The link of an invitation is made when its email is sent, again for every attempt,
// and not for an invitation that has ended.
func TestInvitationLetter(t *testing.T) {
	each(t, func(w *world) {
		p := newPost(w, false)
		w.mails(p, "")
		invite := func(email string) models.Invitation {
			i := models.Invitation{Email: email, InviterID: w.root.User.ID, CreatedAt: w.store.Now(), ExpiresAt: w.store.Now().Add(time.Hour)}
			storetest.InTx(w, w.store, func(q *store.Queries) error {
				if err := q.CreateInvitation(&i); err != nil {
					return err
				}
				return q.QueueLetter(models.LetterInvitation, models.Letter{Address: i.Email, Invitation: i.ID})
			})
			return i
		}
		i, revoked := invite("new@example.org"), invite("other@example.org")
		storetest.InTx(w, w.store, func(q *store.Queries) error {
			_, err := q.RevokeInvitation(revoked)
			return err
		})
		w.settle(w.sender)
		if len(p.letters) != 1 {
			w.Fatalf("%d letters, want one", len(p.letters))
		}
		page, secret := w.linkIn(p.letters[0])
		found, err := policies.InvitationOf(w.store.Read(w.Context()), secret)
		if err != nil || found.ID != i.ID || page != "invitation" {
			w.Errorf("/%s leads to %+v, %v", page, found, err)
		}
		for _, d := range w.deliveries() {
			if strings.Contains(d.Body, secret) {
				w.Errorf("a delivery contains the secret: %s", d.Body)
			}
		}
	})
}
