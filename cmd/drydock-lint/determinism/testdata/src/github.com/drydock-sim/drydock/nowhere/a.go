package nowhere // want `package nowhere stands on no floor`

func f() { go f() } // not judged before it has a floor
