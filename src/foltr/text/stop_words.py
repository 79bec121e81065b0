"""Stop words by language, folded as words are: function words only, no word that a title may consist of.

The order is part of the contract: an index numbers the words of a language's list first, so that a word number below
the length of the list is a stop word. New words go to the end of a list and change the index version.
"""

_LISTS = {
    "english": """
        a about above after again all also am an and any are as at be because been before being below between both but
        by can could did do does doing down during each either few for from further had has have having he her here
        hers him his how i if in into is it its itself just may me might more most must my neither no nor not now of
        off on once only onto or other our ours out over own per same shall she should since so some such than that the
        their theirs them then there these they this those though through to too under until up upon us very was we
        were what when where whether which while who whom whose why will with within without would yet you your yours
    """,
    "german": """
        aber als am an auch auf aus bei bin bis bist da damit dann das dass dein deine dem den der des die dies diese
        diesem diesen dieser dieses doch dort du durch ein eine einem einen einer eines er es euch euer fur hat hatte
        haben ich ihm ihn ihnen ihr ihre im in ins ist ja kein keine konnen mein meine mich mir mit nach nicht noch nur
        ob oder ohne sehr sein seine sich sie sind so uber um und uns unser unter vom von vor war waren was weil wenn
        wer werden wie wir wird wo zu zum zur
    """,
    "french": """
        a ai alors au aucun aussi aux avec avoir c ce ces cet cette ceux ci comme d dans de des donc dont du elle elles
        en entre est et etaient etait etre eu il ils j je l la le les leur leurs lui m ma mais me meme mes moi mon n ne
        ni nos notre nous on ont ou par pas plus pour qu que quel quelle qui s sa sans se ses si son sont sous sur t ta
        te tes toi ton tu un une vos votre vous y
    """,
    "spanish": """
        a al algo ante antes asi aunque cada como con contra cual cuando de del desde donde dos e el ella ellas ellos en
        entre era eran es esa ese eso esta este esto estos fue ha han hasta hay la las le les lo los mas me mi mis muy
        ni no nos nosotros o os otra otro para pero por porque que quien se ser si sin sobre son su sus tambien te tiene
        tu tus un una uno unos y ya yo
    """,
    "italian": """
        a ad ai al alla alle allo anche c che chi ci come con cui d da dal dalla dalle dei del della delle dello di dove
        e ed era erano gli ha hanno ho i il in io l la le lei lo loro lui ma mi mia mio ne negli nei nel nella nelle no
        noi non nostro o ogni per perche piu quale quando quella quello questa questo qui se sei si sia siamo sono su
        sua sul sulla suo ti tra tu tua tuo un una uno vi voi
    """,
    "portuguese": """
        a ao aos as ate com como da das de dela dele do dos e ela elas ele eles em entre era essa esse esta este eu foi
        for ha isso isto ja lhe mais mas me mesmo meu minha muito na nao nas nem no nos nossa nosso num numa o os ou
        para pela pelas pelo pelos por qual quando que quem se sem ser seu seus so sua suas tambem te tem um uma voce
    """,
    "dutch": """
        aan al als bij dan dat de der deze die dit doch door dus een en er ge geen haar had heb hebben heeft hem het
        hier hij hoe hun ik in is ja je kan kon maar me met mij mijn moet na naar niet nog nu of om ons ook op over te
        tegen toen tot u uit van veel voor was wat we wel werd wie wij worden zal ze zich zij zijn zo zonder zou
    """,
    "swedish": """
        alla att av blev bli da de dem den denna det detta dig din du efter ej eller en er ett fran for ha hade han har
        henne hennes hon honom hur har i icke inte jag kan man med mig min mot mycket nar nagon nu och om pa samma sedan
        sig sin ska skulle som sa till under upp ut utan vad var vara vem vi vid vilken ar
    """,
    "norwegian": """
        alle at av bare begge ble bli da de deg dem den denne der det dette din du eller en enn er et etter for fra
        fordi ha hadde han hans har hun hva hvem hvis hvor i ikke inn ja jeg kan man med meg men min mot mye na noe noen
        nar og om opp oss over pa sa seg sin skal som til ut uten var ved vi vil ville
    """,
    "danish": """
        alle at af blev bliver da de dem den denne der deres det dette dig din du efter eller en end er et for fra ham
        han hans har havde hun hvad hvem hvis hvor i ikke ind jeg kan man med meget men mig min mod nar noget nogle nu
        og ogsa om op os over pa sig sin skal som til ud uden var ved vi vil ville
    """,
    "finnish": """
        ei eika en ette etta han hanen he ja jo joka jos jota kanssa koska kuin kun me mika mina minun mita mutta myos
        ne niin nyt ole oli olla on ovat se sen sina sita tai tama tassa te tuo vain vaikka
    """,
    "russian": """
        а без более бы был была были было быть в вам вас весь во вот все всего вы где да даже для до его ее если есть
        еще же за и из или им их к как ко когда кто ли мне мы на над нас не него нет ни но о об он она они оно от по под
        при с со так также там то того тоже только том ты у уже что чтобы эта эти это этот я
    """,
}

STOP_WORDS = {language: tuple(dict.fromkeys(words.split())) for language, words in _LISTS.items()}
