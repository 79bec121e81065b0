// The address of this page has a token that is used up: the search page takes its place, also in the way back.
"use strict";
location.replace("/");
